-- One of these words.
WHEN {old} THEN {new}
