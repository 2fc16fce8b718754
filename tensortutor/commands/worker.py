"""`worker`: PyTorch for several sessions of one user."""

import argparse

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session


def listen(_: Session, arguments: argparse.Namespace) -> int:
    """Serve at a socket until nobody needs it. Raises Refused."""
    from tensortutor.transport.shared_worker import listen

    path = arguments.listen
    try:
        listen(path, arguments.idle)
    except BlockingIOError:
        raise Refused(f"A worker listens at {path} already.") from None
    except OSError as error:
        raise Refused(f"No worker can listen at {path}: {error.strerror or error}.") from None
    return 0
