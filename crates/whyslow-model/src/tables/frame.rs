use crate::Sym;

crate::table! {
    /// Functions in stacks; addresses if no symbol was found.
    FrameRow = "frame", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Function name; null if unknown.
        function: Option<Sym>,
        /// Offset in bytes from the start of the function (from the start of the file, if the
        /// function is unknown) to the return address in the first stack with this frame; null if
        /// neither is known.
        function_offset: Option<i64> [Bytes],
        /// File that contains the code; null if unknown.
        module: Option<Sym>,
        /// Address in the first stack with this frame, as a 64-bit pattern.
        address: i64,
        /// kernel, user, managed (of a language with its own runtime, such as Java).
        kind: Sym,
        /// Source line; null if unknown.
        line: Option<i32>,
    }
}
