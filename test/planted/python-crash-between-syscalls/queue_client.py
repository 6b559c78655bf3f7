"""A client of the spool."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../common"))
from client import Patient


class Queue(Patient):
    def ask(self, **request):
        """Returns the answer. Repeats the request if necessary, which is safe for all requests."""
        def exchange():
            self.send((json.dumps(request) + "\n").encode())
            return json.loads(self.receive_line())

        return self.tried(exchange)
