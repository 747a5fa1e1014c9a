-- stack_frame: frames of stacks with their callers; join callsite_id of stack_sample or lock_wait.
--
-- callsite_id       the stack, by its innermost frame
-- parent_id         callsite_id of the caller; null for an outermost frame
-- depth             callers above it
-- function          name; null where only the address is known
-- module            file that the code came from
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
