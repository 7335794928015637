"""The log of share state: what each record says, contradicts, and leaves to delete."""
