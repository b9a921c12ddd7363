"""`kernelmill completion`: scripts for bash, zsh and fish, which ask this program for candidates.

click's own scripts do not fit words such as `kernel=softmax`: bash ends a word at `=`, and no space
may follow `kernel=`. So bash hands over the whole line here, and gets what is left to insert.
"""

import os
from typing import ClassVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

SHELLS = ("bash", "zsh", "fish")
PROGRAM, VARIABLE = "kernelmill", "_KERNELMILL_COMPLETE"
_OPEN = ("=", ".")
"""A candidate that ends so goes on: no space behind it."""
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line
    COMPREPLY=()
    compopt +o nospace
    while IFS= read -r line; do
        [[ $line == *[=.] ]] && compopt -o nospace
        COMPREPLY+=("$line")
    done < <(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" %(complete_var)s=bash_complete %(prog_name)s)
}
complete -F %(complete_func)s %(prog_name)s
"""
_ZSH = """\
#compdef %(prog_name)s
%(complete_func)s() {
    local -a candidates open closed
    local asked=(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete)
    candidates=("${(@f)$(env "${asked[@]}" %(prog_name)s)}")
    for each in "${candidates[@]}"; do
        if [[ $each == *[=.] ]]; then open+=("$each"); elif [[ -n $each ]]; then closed+=("$each"); fi
    done
    (( $#open )) && compadd -U -S '' -- "${open[@]}"
    (( $#closed )) && compadd -U -- "${closed[@]}"
}
compdef %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    source_template: ClassVar[str] = _BASH

    @staticmethod
    def _check_version() -> None:
        """Every bash that knows `compopt` (4.0) does."""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.fsencode(os.environ["COMP_LINE"])[: int(os.environ["COMP_POINT"])].decode(errors="replace")
        words = split_arg_string(line)
        incomplete = "" if line.endswith(" ") or len(words) < 2 else words.pop()
        self._inserted = incomplete.rpartition("=")[0]
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        text = str(item.value)
        return text[len(self._inserted) + 1 :] if self._inserted and text.startswith(self._inserted) else text


class _Zsh(ZshComplete):
    source_template: ClassVar[str] = _ZSH

    def format_completion(self, item: CompletionItem) -> str:
        return str(item.value)


def register() -> None:
    """Use these classes for bash and zsh; fish keeps click's."""
    add_completion_class(_Bash, "bash")
    add_completion_class(_Zsh, "zsh")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell: commands, options, and overrides with names from conf/.

    \b
    Examples:
      eval "$(kernelmill completion bash)"
      kernelmill completion fish > ~/.config/fish/completions/kernelmill.fish
    """
    kinds = {"bash": _Bash, "zsh": _Zsh, "fish": FishComplete}
    print(kinds[shell](click.get_current_context().find_root().command, {}, PROGRAM, VARIABLE).source())
