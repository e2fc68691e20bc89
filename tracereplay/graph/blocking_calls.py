"""Runtime calls that return when device work has ended, by name: the one list of them."""

import re

DEVICE_CALL = re.compile(r"^((cuda|hip)Device|(cu|hip)Ctx)Synchronize")
EVENT_CALL = re.compile(r"^(cuda|hip|cu)EventSynchronize")
_QUEUE_CALL = re.compile(r"^(cuda|hip|cu)StreamSynchronize")
BLOCKING_CALL = re.compile("|".join(pattern.pattern for pattern in (DEVICE_CALL, EVENT_CALL, _QUEUE_CALL)))
