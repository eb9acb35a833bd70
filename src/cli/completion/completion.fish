# Completes lifepod in fish. To use it in every shell:  lifepod completion fish >~/.config/fish/completions/lifepod.fish
function __lifepod_complete
    set -l current (commandline -ct)
    set -l words (commandline -opc) "$current"
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l answer ($program __complete $words[2..-1] 2>/dev/null)
    test (count $answer) -gt 0; or return
    switch $answer[-1]
        case ':0'
            __fish_complete_path "$current"
        case ':16'
            __fish_complete_directories "$current"
        case '*'
            set -e answer[-1]
            string join \n -- $answer
    end
end
complete -c lifepod -f -a '(__lifepod_complete)'
