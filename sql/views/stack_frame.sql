-- stack_frame: stack frames with their callers; join on callsite_id of stack_sample or lock_wait.
--
-- callsite_id       the stack, by its innermost frame
-- parent_id         callsite_id of the caller; null for the outermost frame
-- depth             number of callers above it
-- function          name; null if only the address is known
-- module            file that contains the code
-- kind              kernel, user
-- address           as a 64-bit pattern
CREATE VIEW stack_frame AS
SELECT
    callsite.id AS callsite_id,
    callsite.parent_id,
    callsite.depth,
    frame.function,
    frame.module,
    frame.kind,
    frame.address
FROM callsite
INNER JOIN frame ON frame.id = callsite.frame_id;
