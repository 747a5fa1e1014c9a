-- The only files that may be opened after the session is locked.
SET allowed_paths = [{files}];
