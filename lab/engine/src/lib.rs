//! Sends streams at exact times, accounts for each frame that comes back.
