"""What a GPU's machine code says, whichever compiler wrote it: resources, occupancy, instructions."""
