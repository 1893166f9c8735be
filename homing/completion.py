"""Completion of homing's words in bash, zsh and fish: commands, flags, and the words that a flag may have."""

from __future__ import annotations

from homing.cli import COMMANDS
from homing.errors import UserError
from homing.help import flags_of
from homing.options import load_options

#: Below share/.
PLACES = {
    "bash": "bash-completion/completions/homing",
    "zsh": "zsh/site-functions/_homing",
    "fish": "fish/vendor_completions.d/homing.fish",
}


def _words() -> tuple[dict[str, list[str]], dict[str, str]]:
    """The flags of each command, and the words that a flag may have (space between)."""
    from homing.manual import commands

    flags = {
        name: sorted({one for flag in flags_of(command) for one in flag.names} | {"--help"})
        for name, command in commands(*COMMANDS).items()
    }
    chosen = [option for option in load_options() if option.flag and option.choices]
    choices = {option.flag: " ".join(option.choices) for option in chosen}
    return flags, {**choices, "--on": "here lab", "--summary": "stderr stdout none"}


def script(shell: str) -> str:
    """The script of a shell. UserError where it is not one of PLACES."""
    if shell not in PLACES:
        raise UserError(f"--completion {shell or '(nothing)'}: must be one of {', '.join(PLACES)}")
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def _reply(words: str) -> str:
    return f'COMPREPLY=($(compgen -W "{words}" -- "$word"))'


def _bash() -> str:
    flags, choices = _words()
    lines = [
        "# bash completion of homing; written by homing --completion bash",
        "_homing() {",
        '    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at found=""',
        "    COMPREPLY=()",
        "    if ((COMP_CWORD == 1)); then",
        f'        COMPREPLY=($(compgen -W "{" ".join(COMMANDS)} --help --version --completion" -- "$word"))',
        "        return",
        "    fi",
        "    case $before in",
        *(f"    {flag}) {_reply(words)}; return ;;" for flag, words in choices.items()),
        f"    --completion) {_reply('bash zsh fish')}; return ;;",
        "    esac",
        "    for ((at = 2; at < COMP_CWORD; at++)); do [[ ${COMP_WORDS[at]} == -- ]] && found=yes; done",
        "    if [[ $word == -* && -z $found ]]; then",
        "        case ${COMP_WORDS[1]} in",
        *(f"        {name}) {_reply(' '.join(words))} ;;" for name, words in flags.items()),
        "        esac",
        "    else",
        '        COMPREPLY=($(compgen -c -- "$word") $(compgen -f -- "$word"))',
        "    fi",
        "}",
        "complete -o default -F _homing homing",
    ]
    return "\n".join(lines) + "\n"


def _zsh() -> str:
    flags, choices = _words()
    lines = [
        "#compdef homing",
        "# written by homing --completion zsh",
        "_homing() {",
        "    if ((CURRENT == 2)); then",
        f"        compadd -- {' '.join(COMMANDS)} --help --version --completion",
        "        return",
        "    fi",
        "    case ${words[CURRENT-1]} in",
        *(f"    {flag}) compadd -- {words}; return ;;" for flag, words in choices.items()),
        "    --completion) compadd -- bash zsh fish; return ;;",
        "    esac",
        "    if [[ ${words[CURRENT]} == -* && -z ${words[(r)--]} ]]; then",
        "        case ${words[2]} in",
        *(f"        {name}) compadd -- {' '.join(found)} ;;" for name, found in flags.items()),
        "        esac",
        "    else",
        "        _files",
        "        _command_names -e",
        "    fi",
        "}",
        '_homing "$@"',
    ]
    return "\n".join(lines) + "\n"


def _fish() -> str:
    flags, choices = _words()
    lines = ["# fish completion of homing; written by homing --completion fish"]
    for name, entry in COMMANDS.items():
        summary = entry.summary.replace("'", "")
        lines.append(f"complete -c homing -n __fish_use_subcommand -a {name} -d '{summary}'")
    for flag in ("version", "help", "completion"):
        lines.append(f"complete -c homing -n __fish_use_subcommand -l {flag}")
    for name, found in flags.items():
        for flag in found:
            values = f" -x -a '{choices[flag]}'" if flag in choices else ""
            if flag.startswith("--"):
                word = flag.removeprefix("--")
                lines.append(f"complete -c homing -n '__fish_seen_subcommand_from {name}' -l {word}{values}")
    return "\n".join(lines) + "\n"
