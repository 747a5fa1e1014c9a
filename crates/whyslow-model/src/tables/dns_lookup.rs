use crate::Sym;

crate::table! {
    /// Lookups of host names by functions of the C library, from call to return.
    DnsLookupRow = "dns_lookup", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Name that was looked up; null if none was asked for (an address of this host), or it could not be read.
        host: Option<Sym>,
        /// Service or port that was asked for with it.
        service: Option<Sym>,
        /// getaddrinfo, gethostbyname, gethostbyname2, gethostbyname_r, gethostbyname2_r: the outermost, where one calls another.
        function: Sym,
        /// ok, EAI_NONAME, EAI_AGAIN, HOST_NOT_FOUND, …, as netdb.h calls them; failed where the function keeps the reason to itself; null if the end was not recorded.
        result: Option<Sym>,
        /// Number of the result: of getaddrinfo its own, of the others that of h_errno, or of errno; null where there is none.
        code: Option<i32>,
        /// First address found.
        address: Option<Sym>,
        /// Thread (recording-unique id); null where the source cannot tell.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
        /// CPU of the begin; null where only the end is known.
        cpu: Option<i32>,
    }
}
