"""The only module that reads environment variables; each one is a function that says what it is for."""

import os


def compiler() -> str | None:
    """$CXX: the C++ compiler that the user prefers, as build tools everywhere take it."""
    return os.environ.get("CXX") or None


def untranslated() -> dict[str, str]:
    """All variables, with messages of programs in plain English: reasons are shown, searched and compared."""
    return {**os.environ, "LC_ALL": "C"}


def visible_devices() -> tuple[str, ...] | None:
    """$CUDA_VISIBLE_DEVICES: the devices that this process may use; None where it is not restricted."""
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return None
    return tuple(part.strip() for part in value.split(",") if part.strip())


def mlflow_defaults() -> None:
    """MLflow's own variables where the user did not set them: no telemetry, a dead server is told soon."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
