"""Data sets from artifacts: rows, what is left out, and that nothing private is in them."""

import dataclasses
import json
import platform
from pathlib import Path

import jsonschema
import msgspec
import pyarrow.parquet as pq
import pytest

from pipeline.interop.dataset import table_files
from pipeline.interop.dataset.dataset_export import ExportCounts, PairCollector
from pipeline.interop.dataset.row_schema import DatasetRow
from pipeline.records.errors import ConfigError, StoreError
from pipeline.records.layout import output_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record, to_json
from pipeline.store.atomic import write_atomic
from tests.execution.bundle.made_up import Run
from tests.interop.dataset.made_up import exported, fail_first, ours, plain, rows, sample

KEY = "sk-canary-0815"
COMMAND = "kernelmill export --out out"


@dataclasses.dataclass(frozen=True)
class Exported:
    """A store and what was exported of it, which tests only read."""

    artifacts: Path
    out: Path
    counts: ExportCounts


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of this repository's kernel, which tests only read."""
    return ours(tmp_path_factory.mktemp("run") / "artifacts")


@pytest.fixture(scope="module")
def of_run(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """What verified in it."""
    root, out = Path(run.root), tmp_path_factory.mktemp("of-run") / "out"
    return Exported(root, out, exported(root, out, command=COMMAND))


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The large store, which tests only read."""
    return sample(tmp_path_factory.mktemp("sampled") / "artifacts")


@pytest.fixture(scope="module")
def verified(sampled: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """What verified in the large one."""
    out = tmp_path_factory.mktemp("verified") / "out"
    return Exported(sampled, out, exported(sampled, out))


@pytest.fixture(scope="module")
def every(sampled: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """All of the large one, failures too."""
    out = tmp_path_factory.mktemp("every") / "out"
    return Exported(sampled, out, exported(sampled, out, failures=True))


def test_a_row_has_what_one_trains_on(run: Run, of_run: Exported) -> None:
    """Reference, source with origin and licence, tunables, outcome of each stage, feedback, time."""
    found = rows(of_run.out)
    assert len(found) == of_run.counts.rows == run.plan.tasks[0].proposed
    row = found[0]
    assert row.source.text == Path("kernels/softmax/softmax.cpp").read_text()
    assert (row.source.origin, row.source.licence) == ("this project", "Apache-2.0")
    assert row.reference.text == Path("kernels/softmax/reference.py").read_text()
    assert row.reference.licence == "Apache-2.0"
    assert [end.outcome for end in row.stages] == [Outcome.PASSED] * 3
    assert row.measurement is not None and row.measurement.seconds.value == 1e-5
    assert "measured: 10.0 µs a call" in row.feedback
    assert {each.name for each in row.tunables} == {"LANES", "ONLINE", "STREAM", "UNROLL"}
    assert {fact.name for made in row.made for fact in made.versions} == {"torch"}
    assert len({each.id for each in found}) == len(found)


def test_files_that_sources_include_are_there_once(of_run: Exported) -> None:
    """By the digest that the rows name."""
    (part,) = rows(of_run.out)[0].source.parts
    (file,) = plain(of_run.out, "files")
    assert (file["digest"], file["path"]) == (part.digest, "kernels/vector.hpp")
    assert file["text"] == Path("kernels/vector.hpp").read_text()


def test_both_formats_hold_the_same(every: Exported, tmp_path: Path) -> None:
    """Typed columns; every value of every row, nested ones too."""
    exported(every.artifacts, tmp_path / "columns", failures=True, form="parquet")
    for table in ("rows", "pairs", "files", "attempts"):
        columns = pq.read_table(tmp_path / "columns" / f"{table}.parquet").to_pylist()
        assert columns == plain(every.out, table)
    assert len(plain(every.out)) > 300


def test_ids_are_equal_in_every_export(verified: Exported, every: Exported) -> None:
    """A second export of more has the rows of the first one under their ids."""
    one, two = ([row.id for row in rows(each.out)] for each in (verified, every))
    assert set(one) < set(two)
    assert len(set(two)) == len(two)


def test_failures_on_demand(verified: Exported, every: Exported) -> None:
    """Without them only what verified; with them each has its stage and its reason."""
    assert all(row.verification for row in rows(verified.out))
    found = rows(every.out)
    assert len(found) == verified.counts.rows + verified.counts.left_out
    (wrong,) = [row for row in found if row.outcome is Outcome.WRONG_VALUE]
    assert [end.stage for end in wrong.stages] == ["compile", "verify"]
    assert "31 x the bound" in (wrong.stages[-1].reason or "")
    assert wrong.measurement is None and wrong.verification is None
    assert "verify: wrong_value: y[17, 3] = 0.25" in wrong.feedback


def test_what_was_replayed_is_not_ours(tmp_path: Path) -> None:
    """Measurements that somebody recorded elsewhere: no gate here judged them, and there is no source."""
    root = tmp_path / "artifacts"
    count = ours(root).plan.tasks[0].proposed
    (path,) = (root / "plan" / "aggregate").glob("*.json")
    spec = read_record(path, AggregateSpec)
    tasks = tuple(msgspec.structs.replace(task, recorded="Some GPU, recorded in f") for task in spec.tasks)
    write_atomic(path, to_json(msgspec.structs.replace(spec, tasks=tasks)))
    with pytest.raises(StoreError, match=f"nothing to export: .* {count} that were recorded elsewhere"):
        exported(root, tmp_path / "out")


def test_comparisons_have_intervals_and_verdicts(verified: Exported) -> None:
    """Against each baseline; one that could not be measured has its reason."""
    measured = [row.measurement for row in rows(verified.out) if row.measurement]
    assert measured
    for each in measured:
        assert all(one.speedup.low <= one.speedup.value <= one.speedup.high for one in each.compared)
        assert {one.verdict for one in each.compared} <= {"faster", "slower", "indistinguishable"}
    assert any(one.reason for each in measured for one in each.absent)


def test_estimates_are_called_so(verified: Exported) -> None:
    """No field that holds an estimate has a name that could be taken for a measurement's."""
    gpu = [row.facts for row in rows(verified.out) if row.hardware == "h200" and row.facts]
    assert any(fact.estimate_occupancy is not None for fact in gpu)
    text = (verified.out / "rows.jsonl").read_text()
    assert '"occupancy_bound"' not in text and '"gain_at_most"' not in text


def test_nothing_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither paths, nor names of machine and user, nor keys, whoever wrote them into a text."""
    monkeypatch.setenv("SOME_API_KEY", KEY)
    monkeypatch.setattr(platform, "node", lambda: "machine-of-mine")
    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    root = tmp_path / "artifacts"
    private = [str(Path.cwd() / "x.cpp"), str(Path.home() / "y"), "/home/other/z", str(root / "w")]
    names = f"machine-of-mine somebody {KEY}"
    identity = fail_first(root, ours(root), f"{' '.join(private)} {names}: no such file")
    command = f"kernelmill export --out {tmp_path / 'out'}"
    exported(root, tmp_path / "out", failures=True, command=command)
    content = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir()).decode()
    for secret in (*private, *names.split(), str(tmp_path), str(Path.cwd()), "/home/other"):
        assert secret not in content
    (failed,) = [row for row in rows(tmp_path / "out") if row.variant == identity]
    reason = failed.stages[-1].reason or ""
    assert reason.split()[-6:-3] == ["<host>", "<user>", "[key]:"]
    assert reason.startswith("./x.cpp ~/y ~/z ")


def test_unfinished_tasks_are_counted(tmp_path: Path) -> None:
    """A task that lacks an output has no rows; nothing at all is an error that says why."""
    run = ours(tmp_path / "artifacts")
    output_path(tmp_path / "artifacts", "profile", run.plan.tasks[0].row.profile, 0).unlink()
    with pytest.raises(StoreError, match=r"nothing to export: 0 variants .* 1 tasks without all"):
        exported(tmp_path / "artifacts", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    sample(tmp_path / "artifacts")
    assert exported(tmp_path / "artifacts", tmp_path / "out").unfinished == 1


def test_one_experiment(tmp_path: Path) -> None:
    """By name or by key; an unknown one is an error that lists those that are there."""
    root = tmp_path / "artifacts"
    run = ours(root)
    sample(root)
    for number, name in enumerate(("smoke", run.plan.aggregate)):
        exported(root, tmp_path / str(number), experiment=name)
        assert {row.experiment for row in rows(tmp_path / str(number))} == {"smoke"}
    with pytest.raises(ConfigError, match=r"--experiment nothing: not in .*; there are sample, smoke"):
        exported(root, tmp_path / "out", experiment="nothing")


def test_a_folder_that_is_there_is_left_alone(run: Run, tmp_path: Path) -> None:
    """Nothing is overwritten, and nothing half-written is left."""
    (tmp_path / "out").mkdir()
    with pytest.raises(StoreError, match="is there already: name another folder, or remove it"):
        exported(Path(run.root), tmp_path / "out")
    assert {path.name for path in tmp_path.rglob("*")} == {"out"}


def test_an_empty_store(tmp_path: Path) -> None:
    """One line that says so."""
    with pytest.raises(StoreError, match="no experiment was planned there"):
        exported(tmp_path / "artifacts", tmp_path / "out")


def test_the_schema_describes_the_rows(every: Exported) -> None:
    """Every line is valid under it; a line without its id is not."""
    schema = json.loads((every.out / "schema.json").read_bytes())
    of_rows = {"$defs": schema["$defs"], **schema["properties"]["rows"]}
    validator = jsonschema.Draft202012Validator(of_rows)
    for line in plain(every.out)[::20]:
        validator.validate(line)
    broken = dict(plain(every.out)[0])
    del broken["id"]
    assert not validator.is_valid(broken)


def test_rows_are_written_as_they_come(
    sampled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet has a group for so many rows at most, so that only these are in memory."""
    monkeypatch.setattr(table_files, "GROUP_ROWS", 50)
    tables = exported(sampled, tmp_path / "out", form="parquet")
    file = pq.ParquetFile(tmp_path / "out" / "rows.parquet")
    assert file.metadata.num_rows == tables.rows
    assert file.metadata.num_row_groups == -(-tables.rows // 50)


def test_the_card_says_what_is_in_it(run: Run, of_run: Exported) -> None:
    """Counts, licences, versions, and the command that made it."""
    card = (of_run.out / "README.md").read_text()
    assert card.startswith("---\nlicense: apache-2.0\n")
    assert COMMAND in card
    assert f"| softmax | cpu | float32 | cpp | yes | {of_run.counts.rows} |" in card
    assert f"| source | Apache-2.0 | this project | yes | {of_run.counts.rows} |" in card
    assert "- torch: 2" in card
    assert run.plan.experiment in card


@pytest.mark.slow
def test_equal_results_of_two_experiments_are_one_row(tmp_path: Path) -> None:
    """Planned twice under other names, measured once."""
    root = sample(tmp_path / "artifacts")
    exported(root, tmp_path / "one")
    path = root / "plan" / "aggregate" / "sample-1.json"
    other = json.loads(path.read_bytes()) | {"experiment": "other"}
    (path.parent / "other-1.json").write_bytes(msgspec.json.encode(other))
    exported(root, tmp_path / "two")
    assert [row.id for row in rows(tmp_path / "one")] == [row.id for row in rows(tmp_path / "two")]
    assert isinstance(rows(tmp_path / "two")[0], DatasetRow)


@pytest.fixture(scope="module")
def row(of_run: Exported) -> DatasetRow:
    """One that was measured."""
    return rows(of_run.out)[0]


def other(row: DatasetRow, identity: str, **changes: object) -> DatasetRow:
    """The same problem elsewhere."""
    return msgspec.structs.replace(row, id=identity, **changes)  # type: ignore[arg-type]


def slower(row: DatasetRow, identity: str) -> DatasetRow:
    """Twice as slow."""
    assert row.measurement is not None
    seconds = msgspec.structs.replace(row.measurement.seconds, value=2 * row.measurement.seconds.value)
    return other(row, identity, measurement=msgspec.structs.replace(row.measurement, seconds=seconds))


def test_the_best_of_each_platform(row: DatasetRow) -> None:
    """The fastest that was measured; where nothing was, the default; else the first."""
    pairs = PairCollector()
    cuda = {"backend": "cuda", "kind": "cuda", "measurement": None}
    hip = {"backend": "triton", "kind": "hip", "measurement": None}
    pairs.add(slower(row, "slow"), default=True)
    pairs.add(other(row, "fast"), default=False)
    pairs.add(other(row, "some", **cuda), default=False)
    pairs.add(other(row, "default", **cuda), default=True)
    pairs.add(other(row, "first", **hip), default=False)
    pairs.add(other(row, "another", **hip), default=False)
    found = {(pair.left_platform, pair.right_platform): pair for pair in pairs.pairs()}
    assert set(found) == {("cpp/cpu", "cuda/cuda"), ("cpp/cpu", "triton/hip"), ("cuda/cuda", "triton/hip")}
    one = found["cpp/cpu", "cuda/cuda"]
    assert (one.left, one.left_chosen, one.right, one.right_chosen) == (
        *("fast", "fastest"),
        *("default", "default"),
    )
    assert (found["cuda/cuda", "triton/hip"].right, found["cuda/cuda", "triton/hip"].right_chosen) == (
        "first",
        "first",
    )


def test_other_problems_are_no_pair(row: DatasetRow) -> None:
    """Equal names, other dimensions."""
    pairs = PairCollector()
    pairs.add(row, default=True)
    pairs.add(other(row, "other", group="another", backend="cuda", kind="cuda"), default=True)
    assert list(pairs.pairs()) == []


def test_every_pair_is_of_rows_that_are_there(every: Exported) -> None:
    """And of one problem on two platforms, both verified."""
    by_id = {row.id: row for row in rows(every.out)}
    pairs = plain(every.out, "pairs")
    assert pairs
    for pair in pairs:
        left, right = by_id[pair["left"]], by_id[pair["right"]]
        assert left.group == right.group == pair["group"]
        assert (left.backend, left.kind) != (right.backend, right.kind)
        assert left.verification and right.verification
