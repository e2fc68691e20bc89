"""What a rank holds besides its tables: in, an architecture, software, a batch; out, bytes, those of activations estimated."""

from tracereplay.hardware.memory.placement import Besides
from tracereplay.hardware.memory.tables import state_bytes
from tracereplay.synth.architecture import Architecture
from tracereplay.synth.software import BYTES_OF, Software


def besides_tables(architecture: Architecture, software: Software, batch_per_rank: int) -> Besides:
    """Dense weights with their gradients and optimizer state, in 4 bytes with a copy in the format of the layers where that is
    shorter, and activations: what every layer gives out is kept for its backward, and so are the pooled vectors and what goes
    into the interaction, each with a gradient of its size beside it. Buffers of libraries and fragmentation are not counted, so
    the activations are an estimate.
    """
    parameters, size = architecture.dense_parameters, BYTES_OF[software.matrix]
    copies = size if size < BYTES_OF["fp32"] else 0
    kept = sum(layer.outputs for layer in architecture.dense_layers) + 2 * (architecture.dim + architecture.table_width)
    return Besides(
        dense_weights=parameters * (BYTES_OF["fp32"] + copies),
        gradients=parameters * BYTES_OF[software.gradients],
        dense_state=state_bytes(1, parameters, software.optimizer),
        activations=2 * batch_per_rank * (kept + architecture.interaction_width) * size,
    )
