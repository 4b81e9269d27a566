"""The acting half of Noisegate: sockets, processes, disks."""

__version__ = "0.2.0"
