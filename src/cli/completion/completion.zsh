#compdef lifepod
# Completes lifepod in zsh. To use it in every shell, add to ~/.zshrc, after compinit:  source <(lifepod completion zsh)
_lifepod() {
    local line word directive
    local -a answer described
    answer=("${(@f)$("${(Q)words[1]/#\~\//$HOME/}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    directive=${answer[-1]#:}
    for line in "${(@)answer[1,-2]}"; do
        word=${line%%$'\t'*}
        # _describe expects WORD:DESCRIPTION, with a backslash before each colon of the word.
        if [[ $line == *$'\t'* ]]; then
            described+=("${word//:/\\:}:${line#*$'\t'}")
        else
            described+=("${word//:/\\:}")
        fi
    done
    case $directive in
    0) _files && return ;;
    16) _files -/ && return ;;
    esac
    _describe -V lifepod described
}
# zsh calls the file itself if it is in a folder of fpath.
if [[ ${funcstack[1]} == _lifepod ]]; then
    _lifepod "$@"
else
    compdef _lifepod lifepod
fi
