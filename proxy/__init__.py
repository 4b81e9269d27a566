"""The acting half of Noisegate: sockets, processes, disks."""
