"""Becoming root on the box: at once as root, by sudo without a password otherwise.

pyinfra's own ``_sudo`` works too, and then these wrappers find themselves root already. They
never ask: a prompt in the middle of a switch, or in CI, would hang the run.
"""

from pyinfra.api import QuoteString, StringCommand

_CHANGE = 'if [ "$(id -u)" = 0 ]; then exec sh -c "$0"; else exec sudo -n -- sh -c "$0"; fi'

_READ = (
    'if [ "$(id -u)" = 0 ]; then exec sh -c "$0"; fi; '
    'if e=$(LC_ALL=C sudo -n true 2>&1); then exec sudo -n -- sh -c "$0"; fi; '
    'echo "$e"; echo "@@$1 root 1"; exec sh -c "$0"'
)


def as_root(script: str, stdin: str | None = None) -> StringCommand:
    """A change, run as root.

    + script: POSIX sh; every value in it already quoted
    + stdin: content that travels on standard input, and so is in no argument list and no log
    """
    bits = ("sh", "-c", QuoteString(_CHANGE), QuoteString(script))
    return StringCommand(*bits) if stdin is None else StringCommand(*bits, _stdin=stdin)


def read_as_root(script: str, nonce: str) -> StringCommand:
    """A read, run as root where possible and as the login user otherwise.

    Where sudo refuses, its words become the section ``root`` of the read, and exit status 0 keeps
    pyinfra from asking for a password.

    + script: POSIX sh that prints the probe's frame
    + nonce: token that marks the frame lines
    """
    return StringCommand("sh", "-c", QuoteString(_READ), QuoteString(script), QuoteString(nonce))
