"""Prints the field classes that babeltrace2 reports for each trace directory given as an argument.

One line per scope: DIRECTORY, stream id, event id and name (or `-`), scope and its field class,
separated by tabs. A directory that babeltrace2 refuses, or that has no streams, prints nothing.
"""

import sys

import bt2

ROOTS = {
    bt2.FieldPathScope.PACKET_CONTEXT: "packet-context",
    bt2.FieldPathScope.EVENT_COMMON_CONTEXT: "event-context",
    bt2.FieldPathScope.EVENT_SPECIFIC_CONTEXT: "specific-context",
    bt2.FieldPathScope.EVENT_PAYLOAD: "payload",
}


def location(path, roots):
    """Names of the structure members along the path."""
    names = []
    here = roots[path.root_scope]
    for item in path:
        if isinstance(here, bt2._StructureFieldClassConst):
            member = here.member_at_index(item.index)
            names.append(member.name)
            here = member.field_class
        elif isinstance(here, bt2._VariantFieldClassConst):
            here = here.option_at_index(item.index).field_class
        else:
            here = here.element_field_class
    return ROOTS[path.root_scope] + ":" + ".".join(names)


def ranges(rs):
    return ",".join(f"{r.lower}..{r.upper}" for r in sorted(rs, key=lambda r: (r.lower, r.upper)))


def show(fc, roots):
    if isinstance(fc, bt2._StructureFieldClassConst):
        return "{" + " ".join(f"{n}={show(m.field_class, roots)}" for n, m in fc.items()) + "}"
    if isinstance(fc, bt2._StaticArrayFieldClassConst):
        return f"[{fc.length}]{show(fc.element_field_class, roots)}"
    if isinstance(fc, bt2._DynamicArrayWithLengthFieldFieldClassConst):
        where = location(fc.length_field_path, roots)
        return f"[{where}]{show(fc.element_field_class, roots)}"
    if isinstance(fc, bt2._VariantFieldClassConst):
        options = " ".join(
            f"{n}({ranges(o.ranges)})={show(o.field_class, roots)}" for n, o in fc.items()
        )
        return f"<{location(fc.selector_field_path, roots)}>{{{options}}}"
    if isinstance(fc, bt2._StringFieldClassConst):
        return "text"
    if isinstance(fc, bt2._RealFieldClassConst):
        return "real"
    sign = "s" if isinstance(fc, bt2._SignedIntegerFieldClassConst) else "u"
    shown = f"{sign}{fc.field_value_range}/{int(fc.preferred_display_base)}"
    if isinstance(fc, bt2._EnumerationFieldClassConst):
        labels = sorted((label, ranges(m.ranges)) for label, m in fc.items())
        shown += "|" + " ".join(f"{label}:{rs}" for label, rs in labels) + "|"
    return shown


def show_scope(directory, where, scope, fc, roots):
    if fc is None or len(fc) == 0:
        return
    print("\t".join((directory, where, scope, show(fc, roots))))


def show_trace(directory):
    spec = bt2.ComponentSpec.from_named_plugin_and_component_class(
        "ctf", "fs", {"inputs": [directory]}
    )
    for message in bt2.TraceCollectionMessageIterator([spec]):
        if type(message) is not bt2._StreamBeginningMessageConst:
            continue
        trace_class = message.stream.trace.cls
        for stream_id in trace_class:
            stream = trace_class[stream_id]
            roots = {
                bt2.FieldPathScope.PACKET_CONTEXT: stream.packet_context_field_class,
                bt2.FieldPathScope.EVENT_COMMON_CONTEXT: stream.event_common_context_field_class,
            }
            where = f"{stream_id}\t-\t-"
            for scope in roots:
                show_scope(directory, where, ROOTS[scope], roots[scope], roots)
            for event_id in stream:
                event = stream[event_id]
                roots[bt2.FieldPathScope.EVENT_SPECIFIC_CONTEXT] = (
                    event.specific_context_field_class
                )
                roots[bt2.FieldPathScope.EVENT_PAYLOAD] = event.payload_field_class
                where = f"{stream_id}\t{event_id}\t{event.name}"
                print("\t".join((directory, where, "event", "")))
                for scope in list(roots)[2:]:
                    show_scope(directory, where, ROOTS[scope], roots[scope], roots)
        return


for argument in sys.argv[1:]:
    try:
        show_trace(argument)
    except Exception as error:  # babeltrace2 raises its own exception types
        print(f"{argument}: {str(error).splitlines()[0]}", file=sys.stderr)
