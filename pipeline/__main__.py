"""`python -m pipeline`: the command `kernelmill`, also where its libraries are missing."""

import importlib.util
import sys

from pipeline.execution.bundle import requirements
from pipeline.records.errors import BundleError

if __name__ == "__main__":
    if importlib.util.find_spec("click") is None:
        try:
            requirements.check(requirements.RECORDS | requirements.STAGES)
        except BundleError as error:
            sys.exit(f"error: {error}")

    from pipeline.cli.main import main

    sys.exit(main())
