"""What a run did, from the records of its processes, for people and for programs."""
