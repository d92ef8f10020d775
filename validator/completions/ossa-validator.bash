# bash completion for ossa-validator
_ossa_validator() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    case $before in
        --format) COMPREPLY=($(compgen -W "human json sarif junit github" -- "$word")); return ;;
        --as) COMPREPLY=($(compgen -W "auto ossa agent tenantquota" -- "$word")); return ;;
        --color) COMPREPLY=($(compgen -W "auto always never" -- "$word")); return ;;
        --namespace|--tenant|--jobs) return ;;
        explain) COMPREPLY=($(compgen -W "$(ossa-validator rules 2>/dev/null | cut -d' ' -f1)" -- "$word")); return ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "--help --version --format --output --quiet --strict --allow-empty --require-image
            --no-cross-checks --namespace --as --show-defaults --color --jobs --tenant" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
        [[ $COMP_CWORD == 1 ]] && COMPREPLY+=($(compgen -W "rules explain schema crds convert" -- "$word"))
    fi
}
complete -o filenames -F _ossa_validator ossa-validator
