-- The only files that may be opened once the session is locked.
SET allowed_paths = [{files}];
