"""Every error closecall raises on purpose.

ClosecallError
├── InputError            what the user gave cannot be used (exit code 2)
│   ├── DataError         a data set, image or label
│   ├── ModelError        an architecture, weights or a model file
│   │   └── UnsupportedLayerError
│   ├── QueryError        a question that has no meaning
│   └── MissingExtraError an optional dependency that is not installed
├── OutputError           an answer could not be written
├── ClusterError          the processes that were asked are gone
├── SolverError           a solver refused or failed
└── TrainingError         training could not go on

Each message is one sentence that says what was expected, what came and what to do.
"""


class ClosecallError(Exception):
    """The root of all errors that closecall raises on purpose."""


class InputError(ClosecallError):
    """What the user gave cannot be used."""


class DataError(InputError):
    """A data set, an image or a label cannot be used."""


class ModelError(InputError):
    """An architecture, its weights or a model file cannot be used."""


class UnsupportedLayerError(ModelError):
    """A network has an operation that closecall cannot reason about exactly."""


class QueryError(InputError):
    """A question has no meaning for this network and image."""


class MissingExtraError(InputError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs an optional package: pip install "closecall[{extra}]".')


class OutputError(ClosecallError):
    """What was found could not be written."""


class ClusterError(ClosecallError):
    """The processes that questions were sent to are gone or cannot answer."""


class SolverError(ClosecallError):
    """A solver refused the model or failed."""


class TrainingError(ClosecallError):
    """Training could not go on."""
