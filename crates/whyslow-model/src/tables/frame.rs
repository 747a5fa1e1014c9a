use crate::Sym;

crate::table! {
    /// Functions that occur in stacks; addresses where no name was found.
    FrameRow = "frame", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Name of the function; null if it is not known.
        function: Option<Sym>,
        /// Bytes from the begin of the function (of the file, if that has no name) to where the stack met first went on; null if neither is known.
        function_offset: Option<i64> [Bytes],
        /// File that the code came from; null if it is not known.
        module: Option<Sym>,
        /// Address in the stack met first, as a 64-bit pattern.
        address: i64,
        /// kernel, user, managed (of a language with a runtime of its own, as Java).
        kind: Sym,
        /// Line in the source; null if it is not known.
        line: Option<i32>,
    }
}
