"""A Hydra app with a cheap objective; each call leaves a line in calls.txt of the working directory."""

import time
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> object:
    """The quadratic, least at x=1, y=2, shape=round; or what `gives` says for sizes from `from_size` on."""
    with Path("calls.txt").open("a") as calls:
        calls.write(f"{HydraConfig.get().job.num} {' '.join(HydraConfig.get().overrides.task)}\n")
    time.sleep(config.pause_seconds)
    if config.gives is not None and config.size >= config.from_size:
        if config.gives == "exception":
            raise ValueError("size does not fit\nsecond line")
        return float("nan")
    value = (config.x - 1) ** 2 + (config.y - 2) ** 2 + config.shape.penalty
    return [value, -value] if config.two else value


if __name__ == "__main__":
    main()
