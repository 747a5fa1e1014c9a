-- A limit of the session.
SET {name} = {value};
