"""Never comes back from its import."""

import threading

threading.Event().wait()
