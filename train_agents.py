"""Train a scheduler on one scenario and compare it, on worlds it never saw, with every heuristic and with an untrained network.

    python train_agents.py --scenario mixed_gpus --steps 400000 --seed 0 --out runs/mixed_gpus

The run folder holds policy.npz (the best network on validation worlds; `hetenv run SCENARIO --policy rl:FOLDER` uses it), curve.csv and
curve.png (validation while training), test/ (every episode, comparison.csv, table.md), config.json, summary.json, tensorboard/ and
checkpoint/ (`--resume` goes on from it exactly).
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Final, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hetenv.bench.bench import Benchmark, bench
from hetenv.bench.compiled import compiled_scenario
from hetenv.errors import HetenvError, ScenarioError
from hetenv.policy import Policy, make_policy, policy_names
from hetenv.scenario import Compiled

try:
    from agents.rl import sb3_trainer
    from agents.rl.plot import plot_curve
    from agents.rl.sb3_trainer import CHECKPOINT, Settings
    from agents.rl.untrained import save_untrained
    from agents.rl.validation import Task, summary
except ImportError as missing:
    raise SystemExit(
        f"train_agents.py needs the training libraries ({missing.name}): pip install 'hetenv[train]'"
    ) from None

ALGORITHMS: Final = {"maskable_ppo": sb3_trainer.train}
DEFAULT_STEPS: Final = 100_000
UNTRAINED: Final = "untrained"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, exit status 2."""
        print(f"train_agents.py: {message}", file=sys.stderr)
        raise SystemExit(2)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1 (got {text!r})")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0 (got {text!r})")
    return int(text)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = _Parser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--scenario", default="mixed_gpus", help="a shipped name or a YAML file")
    parser.add_argument("--algo", default="maskable_ppo", choices=sorted(ALGORITHMS), help="learning algorithm")
    parser.add_argument(
        "--steps", type=_count, default=DEFAULT_STEPS, help="decisions to train on in all, rounded up to whole rollouts"
    )
    parser.add_argument("--seed", type=_seed, default=0, help="of weights, exploration and the draw of training worlds")
    parser.add_argument("--out", type=Path, help="run folder (default: runs/SCENARIO-ALGO-seedK)")
    parser.add_argument("--resume", action="store_true", help="go on from the run folder's checkpoint up to --steps")
    parser.add_argument("--rule", default="index", help="policy that training starts from, or `none`")
    parser.add_argument("--test-episodes", type=_count, default=100, help="test worlds of the final table")
    parser.add_argument("--against", help="policies of the final table, with commas (default: every registered one)")
    parser.add_argument("--processes", type=_count, help="of the final evaluation (default: one per core)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help=f"change one of {', '.join(knobs())}"
    )
    return parser.parse_args(argv)


def knobs() -> list[str]:
    """Names of the algorithm's settings."""
    return [knob.name for knob in fields(Settings)]


def settings_of(changes: Sequence[str]) -> Settings:
    """Settings with the `--set` changes."""
    settings = Settings()
    for change in changes:
        name, _, text = change.partition("=")
        if name not in knobs():
            raise ScenarioError(f"--set {change}: no such knob; known: {', '.join(knobs())}")
        kind = type(getattr(settings, name))
        try:
            settings = replace(settings, **{name: kind(text)})
        except ValueError:
            raise ScenarioError(
                f"--set {change}: {name} must be {'a whole number' if kind is int else 'a number'}"
            ) from None
    return settings


def rule_of(name: str, compiled: Compiled) -> Policy | None:
    """The rule that training starts from."""
    if name == "none":
        return None
    rule = make_policy(name, compiled.scenario.name)
    if not isinstance(rule, Policy):
        raise ScenarioError(
            f"--rule {name}: plans over the whole queue; a rule must pick candidate rows (such as index)"
        )
    return rule


def rivals_of(against: str | None, compiled: Compiled) -> list[str]:
    """Names of the policies to compare with; each is tried, so that a wrong one is known before the training."""
    rivals = policy_names() if against is None else against.split(",")
    for name in rivals:
        make_policy(name, compiled.scenario.name)
    return rivals


def task_of(args: argparse.Namespace) -> Task:
    """What is to be trained."""
    compiled = compiled_scenario(args.scenario)
    folder = args.out or Path("runs") / f"{compiled.scenario.name}-{args.algo}-seed{args.seed}"
    has_run = (folder / CHECKPOINT).is_dir()
    if args.resume and not has_run:
        raise ScenarioError(f"--resume: no checkpoint in {folder}; leave --resume out to begin")
    if has_run and not args.resume:
        raise ScenarioError(f"--out {folder}: holds a run already; add --resume or name another folder")
    rule = rule_of(args.rule, compiled)
    rule_name = "" if rule is None else args.rule
    return Task(compiled, rule, rule_name, f"{args.algo}_seed{args.seed}", args.seed, folder)


def begin(task: Task, settings: Settings, args: argparse.Namespace) -> None:
    """Write config.json, or check that a resumed run has the same one."""
    config = {
        "scenario": task.compiled.scenario.name,
        "scenario_version": task.compiled.scenario.version,
        "algo": args.algo,
        "seed": task.seed,
        "rule": task.rule_name,
        "settings": asdict(settings),
    }
    path = task.folder / "config.json"
    if args.resume:
        if json.loads(path.read_text(encoding="utf-8")) != config:
            raise ScenarioError(f"--resume: {path} was begun with other arguments; give the same ones or another --out")
        return
    task.folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def bar(console: Console) -> Progress:
    """Progress with a note behind it."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    )


def evaluate(task: Task, rivals: Sequence[str], args: argparse.Namespace, console: Console) -> Benchmark:
    """The trained network against every heuristic and an untrained one on the scenario's test worlds."""
    save_untrained(task.folder / UNTRAINED, task.compiled.scenario.name, task.seed)
    trained, untrained = f"rl:{task.folder}", f"rl:{task.folder / UNTRAINED}"
    seeds = task.compiled.scenario.seeds.numbers("test", args.test_episodes)
    with bar(console) as progress:
        line = progress.add_task("evaluating", total=None, note="")
        return bench(
            [args.scenario],
            [trained, untrained, *rivals],
            seeds,
            processes=args.processes,
            folder=task.folder / "test",
            on_episode=lambda result, done, total: progress.update(
                line, completed=done, total=total, note=f"{result['policy']}"
            ),
        )


def verdicts(found: Benchmark, metric: str, trained: str) -> list[str]:
    """One sentence per rival on the primary metric, the trained policy's gain in percent of the rival's mean."""
    rows = [row for row in found.rows if row.metric == metric and row.policy != trained]
    lines = []
    for row in rows:
        if row.diff is None or row.diff_lo is None or row.diff_hi is None or not row.mean:
            continue
        gain, low, high = (0.0 - 100 * part / row.mean for part in (row.diff, row.diff_hi, row.diff_lo))
        word = {"worse": "better than", "better": "worse than"}.get(row.verdict, "not distinguishable from")
        lines.append(f"{trained} is {word} {row.policy}: {metric} {gain:+.2f} % [{low:+.2f}, {high:+.2f}]")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Train, evaluate, report."""
    args = arguments(argv)
    console = Console(stderr=True)
    try:
        settings, task = settings_of(args.set), task_of(args)
        rivals = rivals_of(args.against, task.compiled)
        begin(task, settings, args)
        with bar(console) as progress:
            line = progress.add_task("training", total=args.steps, note="")
            curve = ALGORITHMS[args.algo](
                task,
                settings,
                args.steps,
                args.resume,
                lambda steps, note: progress.update(line, completed=steps, note=note),
            )
        facts = summary(curve)
        plot_curve(curve, task.folder / "curve.png", task.compiled.scenario.name, task.rule_name)
        console.print(
            f"trained on {facts['decisions']} decisions at {facts['decisions_per_s']:.0f}/s; "
            f"kept the network of decision {facts['best_decisions']}"
        )
        found = evaluate(task, rivals, args, console)
    except HetenvError as error:
        print(f"train_agents.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "train_agents.py: interrupted; the same command with --resume goes on from the last checkpoint",
            file=sys.stderr,
        )
        return 130
    lines = verdicts(found, task.compiled.scenario.primary_metric, make_policy(f"rl:{task.folder}").name)
    (task.folder / "summary.json").write_text(
        json.dumps({**facts, "verdicts": lines}, indent=2) + "\n", encoding="utf-8"
    )
    print(found.table, *lines, sep="\n")
    print(f"run folder: {task.folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
