"""What track logged, and where one looks at it."""

from pipeline.records.record import Record


class TrackedCounts(Record, frozen=True, kw_only=True):
    """Runs of one MLflow experiment, as this ingestion found them."""

    new: int = 0
    same: int = 0
    """Logged before with the same result."""
    replaced: int = 0
    """Logged before with another result: the old run is superseded."""


class TaskLinks(Record, frozen=True, kw_only=True):
    """Pages of the UI for the measured variants of one task, or of the trials of one search."""

    task: str
    title: str
    runs: int
    charts: str
    """The experiment's chart page, filtered to the task: which tunables matter."""
    compare: str | None
    """The compare page of the task's runs; None where no tunable differs between them: it would be empty."""
    compared: int
    """How many of the runs the compare page holds: the fastest, where an address cannot hold them all."""
    differ: bool = True
    """Whether a tunable differs, so that the chart page shows which of them matter."""


class ChampionModel(Record, frozen=True, kw_only=True):
    """A winner in the model registry."""

    model: str
    version: str
    alias: str
    """The hardware target."""
    run: str
    link: str


class TrackingLinks(Record, frozen=True, kw_only=True):
    """Pages of the UI for the whole experiment."""

    charts: str | None
    """The registered winners; None where no winner of these results was registered: they have no tag to be
    found by."""
    compiled: str | None
    """Runs of what was only compiled, where there are any."""
    sweep: str
    models: str
    searches: str | None = None
    """Best so far by round, where a search has several."""
    runs: str | None = None
    """All measured runs, as a table."""
    sweeps: str | None = None
    """All sweeps, as a table."""
    tasks: tuple[TaskLinks, ...]

    @property
    def first(self) -> str:
        """The page to begin with: the winners, all runs, or what there is if nothing was measured."""
        return self.charts or self.runs or self.compiled or self.sweep


class Tracked(Record, frozen=True, kw_only=True, tag="tracked"):
    """Everything is in MLflow."""

    uri: str
    """Without a password."""
    experiments: dict[str, str]
    """MLflow experiment -> its id."""
    sweep: str
    """Run id of the sweep."""
    measured: TrackedCounts
    compiled: TrackedCounts
    champions: tuple[ChampionModel, ...]
    unregistered: int = 0
    """Winners that are no models, because they passed only a preset of verify for editing loops."""
    links: TrackingLinks
    seconds: float


class NotTracked(Record, frozen=True, kw_only=True, tag="not_tracked"):
    """Nothing was logged, and why."""

    reason: str


class TrackOutput(Record, frozen=True, kw_only=True):
    """What track writes for one experiment."""

    experiment: str
    result: Tracked | NotTracked
