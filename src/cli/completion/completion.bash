# Completes lifepod in bash. To use it in every shell, add to ~/.bashrc:  source <(lifepod completion bash)
_lifepod() {
    local line=${COMP_LINE:0:COMP_POINT} current directive separators
    local -a words answer
    COMPREPLY=()
    # Bash separates words at = and :, too; lifepod expects them as they were typed.
    read -r -a words <<<"$line"
    if [[ $line == *[[:space:]] ]]; then words+=(''); fi
    (( ${#words[@]} > 1 )) || return 0
    mapfile -t answer < <("${words[0]/#\~\//$HOME/}" __complete "${words[@]:1}" 2>/dev/null)
    (( ${#answer[@]} > 0 )) || return 0
    directive=${answer[-1]#:}
    unset 'answer[-1]'
    COMPREPLY=("${answer[@]%%$'\t'*}")
    # Bash replaces only the part after the last separator.
    current=${words[-1]}
    separators=${COMP_WORDBREAKS//[^=:]/}
    if [[ -n $separators && $current == *["$separators"]* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*["$separators"]}"}"}")
    fi
    case $directive in
    0) compopt -o default ;;
    16) compopt -o dirnames ;;
    esac
}
complete -F _lifepod lifepod
