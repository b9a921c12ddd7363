"""A description and measurements of one space. In: T1's space, another file's results. Out: one space."""

import msgspec

from pipeline.interop.formats.json_files import listed, shown
from pipeline.records.errors import FormatError
from pipeline.records.search.recorded_space import RecordedSpace


def combined(described: RecordedSpace, measured: RecordedSpace) -> RecordedSpace:
    """The tunables, defaults and conditions of the one, the results and the device of the other.

    Raises
    ------
    FormatError
        They are not of one space: other tunables, or a value that is not declared.
    """
    if set(described.tunables) != set(measured.tunables):
        expected, got = listed(sorted(described.tunables)), listed(sorted(measured.tunables))
        raise FormatError(
            f"{measured.source}: expected the tunables of {described.source} ({expected}), got {got}"
        )
    for name, values in described.tunables.items():
        for result in measured.results:
            if result.tunables[name] not in values:
                got = shown(result.tunables[name])
                raise FormatError(
                    f"{measured.source}: {name}: expected a value of {described.source}, got {got}"
                )
    return msgspec.structs.replace(
        measured,
        source=f"{described.source} + {measured.source}",
        kernel=described.kernel or measured.kernel,
        language=described.language,
        problem=described.problem or measured.problem,
        arguments=described.arguments,
        tunables=described.tunables,
        order=described.order,
        defaults=described.defaults,
        constraints=described.constraints,
        constants=described.constants,
        notes=(*described.notes, *measured.notes),
    )
