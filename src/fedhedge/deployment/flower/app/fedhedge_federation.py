"""What Flower needs to begin a run. Neither app is ever called: `fedhedge deploy` works on the tasks by itself."""

from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

server = ServerApp()
client = ClientApp()
