use crate::Sym;

crate::table! {
    /// DNS lookups by functions of the C library, from call to return.
    DnsLookupRow = "dns_lookup", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Host name; null if none was passed (an address of this host), or if it could not be
        /// read.
        host: Option<Sym>,
        /// Service or port passed with the name.
        service: Option<Sym>,
        /// Function: getaddrinfo, gethostbyname, gethostbyname2, gethostbyname_r, gethostbyname2_r;
        /// the outermost one if one calls another.
        function: Sym,
        /// Result: ok, EAI_NONAME, EAI_AGAIN, HOST_NOT_FOUND, …, as in netdb.h; failed if the
        /// function does not report the reason; null if the end was not recorded.
        result: Option<Sym>,
        /// Result code: the return value of getaddrinfo, h_errno or errno of the other functions;
        /// null if there is none.
        code: Option<i32>,
        /// First address in the result.
        address: Option<Sym>,
        /// Thread (recording-unique id); null if the source does not identify it.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
        /// CPU at the start; null if only the end is known.
        cpu: Option<i32>,
    }
}
