use super::*;

const COLLAPSED: &str = "[pool tid=12];java/lang/Thread.run_[j];a/B.c_[j];__write;do_syscall_64_[k] 40\n\
    [pool tid=12];java/lang/Thread.run_[j] 2\nmain;std::map<a, b>::find(int) 3\n";

const SPEEDSCOPE: &str = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
  "shared":{"frames":[{"name":"main","file":"app.py","line":3},{"name":"read"}]},
  "profiles":[
    {"type":"sampled","name":"Thread 7 \"MainThread\"","unit":"seconds","startValue":0,"endValue":2,
     "samples":[[0],[0,1],[0,9]],"weights":[0.5,1.5,1]},
    {"type":"evented","name":"x","unit":"milliseconds","startValue":0,"endValue":9,
     "events":[{"type":"O","at":0,"frame":0},{"type":"O","at":2,"frame":1},{"type":"C","at":5,"frame":1},
               {"type":"C","at":9,"frame":0},{"type":"C","at":9,"frame":0}]}]}"#;

const CHROME: &str = r#"[{"name":"thread (12): worker","ph":"B","ts":0,"pid":1,"tid":139},
  {"name":"get","ph":"B","ts":10,"pid":1,"tid":139,"args":{"filename":"a.py","line":4}},
  {"name":"get","ph":"E","ts":30,"pid":1,"tid":139},
  {"name":"thread (12): worker","ph":"E","ts":40,"pid":1,"tid":139},
  {"name":"long","ph":"X","ts":5,"dur":20,"pid":1,"tid":"8"},
  {"name":"short","ph":"X","ts":5,"dur":10,"pid":1,"tid":"8"}]"#;

fn read_points(form: Form, text: &str) -> (Vec<String>, Lacks) {
    let read = read(form, text.as_bytes(), None).expect("a profile");
    let profile = &read.profile;
    let points = profile.points.iter().map(|point| {
        let frames: Vec<&str> = profile
            .frames_of(point.stack)
            .map(|frame| frame.function.as_str())
            .collect();
        let thread = &profile.threads[point.thread as usize];
        format!(
            "{}+{} {:?} x{} {}",
            point.ts,
            point.span,
            thread.tid,
            point.credits,
            frames.join("<")
        )
    });
    (points.collect(), read.lacks)
}

#[test]
fn forms_are_told_apart() {
    assert_eq!(form_of(COLLAPSED.as_bytes()), Some(Form::Collapsed));
    assert_eq!(form_of(SPEEDSCOPE.as_bytes()), Some(Form::Speedscope));
    assert_eq!(form_of(CHROME.as_bytes()), Some(Form::Chrome));
    assert_eq!(form_of(b"{\"traceEvents\": []}"), Some(Form::Chrome));
    for text in [
        "",
        "hello\nworld 5",
        "{}",
        "a b 5\nc d 6\n",
        "12;x\n",
        "[1, 2]",
    ] {
        assert_eq!(form_of(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn collapsed_stacks_have_shares_and_no_times() {
    let (points, lacks) = read_points(Form::Collapsed, COLLAPSED);
    assert_eq!(
        points,
        [
            "0+0 None x3 std::map<a, b>::find(int)<main",
            "0+0 Some(12) x40 do_syscall_64<__write<a.B.c<java.lang.Thread.run",
            "0+0 Some(12) x2 java.lang.Thread.run",
        ]
    );
    assert_eq!((lacks.times, lacks.dates, lacks.bad), (45, false, 0));
}

#[test]
fn samples_and_calls_of_speedscope_have_their_times() {
    let (points, lacks) = read_points(Form::Speedscope, SPEEDSCOPE);
    assert_eq!(
        points,
        [
            "0+2000000 None x1 main",
            "0+500000000 Some(7) x1 main",
            "2000000+3000000 None x1 read<main",
            "5000000+4000000 None x1 main",
            "500000000+1500000000 Some(7) x1 read<main",
        ]
    );
    // An undefined frame, and an end without a start.
    assert_eq!((lacks.bad, lacks.unpaired, lacks.dates), (1, 1, true));
}

#[test]
fn calls_of_a_chrome_trace_are_stacks() {
    let (points, lacks) = read_points(Form::Chrome, CHROME);
    assert_eq!(
        points,
        [
            "0+10000 Some(12) x1 thread (12): worker",
            "5000+10000 Some(8) x1 short<long",
            "10000+20000 Some(12) x1 get<thread (12): worker",
            "15000+10000 Some(8) x1 long",
            "30000+10000 Some(12) x1 thread (12): worker",
        ]
    );
    assert_eq!(lacks.unpaired, 0);
}

#[test]
fn what_is_no_profile_is_an_error() {
    for form in [Form::Speedscope, Form::Chrome] {
        for text in ["", "{", "[{\"ph\":5}]", "{\"shared\":5}"] {
            assert!(
                read(form, text.as_bytes(), None).is_err(),
                "{form:?} {text}"
            );
        }
    }
    assert_eq!(
        read(Form::Collapsed, b"x\n\ny z\n", None)
            .expect("it is read")
            .lacks
            .bad,
        2
    );
}

#[test]
fn an_event_of_speedscope_that_is_out_of_order_is_named_and_the_rest_is_read() {
    let text = r#"{"$schema":"speedscope","shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[
      {"type":"evented","name":"x","unit":"seconds","startValue":0,"endValue":9,"events":[
        {"type":"O","at":1,"frame":0},{"type":"O","at":3,"frame":1},{"type":"C","at":2,"frame":1},
        {"type":"C","at":4,"frame":1},{"type":"C","at":5,"frame":0}]}]}"#;
    let (points, lacks) = read_points(Form::Speedscope, text);
    assert_eq!((points.len(), lacks.bad, lacks.unpaired), (3, 1, 0));
    let read = read(Form::Speedscope, text.as_bytes(), None).expect("it is read");
    let words = "profile 0, event 2: at 2 seconds, earlier than the previous one";
    assert_eq!(read.examples, [words]);
}

/// Sample types, samples, locations, functions and strings of a small profile.
fn pprof() -> Vec<u8> {
    let field = |number: u8, body: &[u8]| [&[number << 3 | 2, body.len() as u8], body].concat();
    let mut bytes = Vec::new();
    for measure in [[8, 1, 16, 2], [8, 3, 16, 4]] {
        bytes.extend(field(1, &measure));
    }
    // Locations 1 and 2; 3 samples, 30 ms; the label worker=much.
    let sample = [
        &field(1, &[1, 2])[..],
        &field(2, &[3, 0x80, 0x87, 0xa7, 0x0e]),
        &field(3, &[8, 5, 16, 6]),
    ];
    bytes.extend(field(2, &sample.concat()));
    // Not packed, with an undefined location.
    bytes.extend(field(2, &[8, 9, 16, 1, 16, 5]));
    for (place, function) in [(1, 1), (2, 2)] {
        let line = field(4, &[8, function, 16, 7]);
        bytes.extend(field(4, &[&[8, place][..], &line].concat()));
        bytes.extend(field(5, &[8, function, 16, 6 + function, 32, 9]));
    }
    for text in [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "worker",
        "much",
        "main.compute",
        "main.work",
        "a.go",
    ] {
        bytes.extend(field(6, text.as_bytes()));
    }
    // Time 1000 s, duration 2 s.
    bytes.extend([
        0x48, 0x80, 0xa0, 0x94, 0xa5, 0x8d, 0x1d, 0x50, 0x80, 0xa8, 0xd6, 0xb9, 0x07,
    ]);
    bytes
}

#[test]
fn a_profile_of_pprof_has_shares_and_labels() {
    let bytes = pprof();
    assert_eq!(form_of(&bytes), Some(Form::Pprof));
    let read = read(Form::Pprof, &bytes, Some(5)).expect("a profile");
    let point = read.profile.points[0];
    let frames: Vec<String> = read
        .profile
        .frames_of(point.stack)
        .map(|frame| format!("{} {:?} {:?}", frame.function, frame.module, frame.line))
        .collect();
    assert_eq!(
        frames,
        [
            "main.compute Some(\"a.go\") Some(7)",
            "main.work Some(\"a.go\") Some(7)"
        ]
    );
    let thread = &read.profile.threads[point.thread as usize];
    assert_eq!(thread.name.as_deref(), Some("worker=much"));
    assert_eq!((point.credits, point.ts), (3, 1_002_000_000_000));
    assert_eq!(
        (read.lacks.times, read.lacks.bad, read.lacks.not_time),
        (3, 1, false)
    );
    assert_eq!(read.examples.len(), 1);
}

const RBSPY: &str = r#"rbspy02
{"sample_rate":50,"rbspy_version":"0.55.0","start_time":{"secs_since_epoch":1,"nanos_since_epoch":0}}
{"trace":[{"name":"getaddrinfo [c function]","relative_path":"web.rb","absolute_path":null,"lineno":null},{"name":"connect","relative_path":"web.rb","absolute_path":null,"lineno":9}],"pid":7,"thread_id":140679174716800,"time":{"secs_since_epoch":2,"nanos_since_epoch":5},"on_cpu":false}
{"trace":
"#;

#[test]
fn samples_of_rbspy_have_times_of_day_and_threads_by_address() {
    assert_eq!(form_of(RBSPY.as_bytes()), Some(Form::Rbspy));
    let (points, lacks) = read_points(Form::Rbspy, RBSPY);
    assert_eq!(points, ["2000000005+0 None x1 getaddrinfo<connect"]);
    assert_eq!((lacks.bad, lacks.addresses, lacks.one_thread), (1, 1, true));
    let read = read(Form::Rbspy, RBSPY.as_bytes(), None).expect("it is read");
    assert_eq!(read.profile.interval, Some(20_000_000));
    assert_eq!(read.profile.pid, Some(7));
    let other = super::read(Form::Rbspy, b"rbspy01\n{}\n", None);
    assert!(other.is_err_and(|error| error.contains("version `01`")));
}

const STACKPROF: &str = r#"{"version":1.2,"mode":"wall","interval":20000,"samples":5,"gc_samples":0,
  "missed_samples":2,"metadata":{},"frames":{"11":{"name":"Kernel#sleep","file":"<cfunc>","line":null,"samples":3},
  "12":{"name":"Object#work","file":"web.rb","line":7,"samples":2}},
  "raw":[2,12,11,3,1,12,2,1,99,1],"raw_sample_timestamps":[1020,1040,1060,1080,1100,1120],
  "raw_timestamp_deltas":[20,20,20,20,20,20]}"#;

#[test]
fn samples_of_stackprof_stand_for_the_time_since_the_one_before() {
    assert_eq!(form_of(STACKPROF.as_bytes()), Some(Form::StackprofJson));
    let (points, lacks) = read_points(Form::StackprofJson, STACKPROF);
    assert_eq!(
        points,
        [
            "1000000+60000 None x3 Kernel#sleep<Object#work",
            "1060000+40000 None x2 Object#work"
        ]
    );
    assert_eq!((lacks.bad, lacks.missed, lacks.dates), (1, 2, true));
    let objects = STACKPROF.replace("\"wall\"", "\"object\"");
    let (points, lacks) = read_points(Form::StackprofJson, &objects);
    assert!(lacks.not_time && points[0].contains("+0 "), "{points:?}");
    let (points, lacks) = read_points(
        Form::StackprofJson,
        &STACKPROF.replace("\"raw\"", "\"raw_lines\""),
    );
    assert_eq!(
        points,
        ["0+0 None x3 Kernel#sleep", "0+0 None x2 Object#work"]
    );
    assert!(lacks.sums);
}

/// Truncated anywhere, and with any bit flipped, each profile is read or rejected, and no sample is
/// before the start.
#[test]
fn whatever_is_damaged_is_read_or_refused() {
    let pprof = pprof();
    let dump = b"\x04\x08{\x08:\x09mode:\x09wall:\x0bframes{\x06i\x06{\x07:\x09nameI\"\x06a\x06:\x06ET:\x09line0:\
        \x08raw[\x08i\x06i\x06i\x07";
    let forms: [(Form, &[u8]); 7] = [
        (Form::Pprof, &pprof),
        (Form::Stackprof, dump),
        (Form::StackprofJson, STACKPROF.as_bytes()),
        (Form::Rbspy, RBSPY.as_bytes()),
        (Form::Speedscope, SPEEDSCOPE.as_bytes()),
        (Form::Chrome, CHROME.as_bytes()),
        (Form::Collapsed, COLLAPSED.as_bytes()),
    ];
    let check = |form, bytes: &[u8]| {
        let Ok(read) = read(form, bytes, None) else {
            return 0;
        };
        for point in &read.profile.points {
            assert!(point.span >= 0 && point.credits > 0);
            assert!((point.stack as usize) < read.profile.stacks.len());
        }
        read.profile.points.len()
    };
    for (form, bytes) in forms {
        assert!(check(form, bytes) > 0, "{form:?}");
        for end in 0..bytes.len() {
            check(form, &bytes[..end]);
        }
        let mut changed = bytes.to_vec();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                changed[place] ^= 1 << bit;
                check(form, &changed);
                changed[place] ^= 1 << bit;
            }
        }
    }
}

#[test]
fn a_call_that_nothing_ends_goes_on() {
    let text = r#"[{"name":"a","ph":"B","ts":0,"pid":1,"tid":8},{"name":"b","ph":"B","ts":10,"pid":1,"tid":8},
      {"name":"b","ph":"E","ts":30,"pid":1,"tid":8}]"#;
    let (points, lacks) = read_points(Form::Chrome, text);
    let open = format!("30000+{} Some(8) x1 a", crate::profile::OPEN);
    assert_eq!(
        points,
        ["0+10000 Some(8) x1 a", "10000+20000 Some(8) x1 b<a", &open]
    );
    assert_eq!(lacks.unpaired, 1);
}

#[test]
fn weights_that_no_row_can_tell_are_divided_with_all_others() {
    let (points, lacks) = read_points(Form::Collapsed, "a;b 3000000000\na 1000000\nc 1\n");
    assert_eq!(
        points,
        [
            "0+0 None x1500000000 b<a",
            "0+0 None x500000 a",
            "0+0 None x1 c"
        ]
    );
    assert_eq!((lacks.scaled, lacks.times), (2, 3_001_000_001));
    let most = u64::MAX;
    let (points, lacks) = read_points(Form::Collapsed, &format!("a {most}\na;b {most}\n"));
    assert_eq!(
        points,
        ["0+0 None x2147483647 a", "0+0 None x2147483647 b<a"]
    );
    assert_eq!(lacks.times, most);
    let (points, lacks) = read_points(Form::Collapsed, "a;b 2147483647\na 3\n");
    assert_eq!(points, ["0+0 None x2147483647 b<a", "0+0 None x3 a"]);
    assert_eq!(lacks.scaled, 0);
    let stackprof = STACKPROF.replace("raw\":[2,12,11,3,1,12,2,1,99,1]", "raw\":[1,12,9000000000]");
    assert!(read_points(Form::StackprofJson, &stackprof).0[0].contains(" x1800000000 "));
    let speedscope = r#"{"$schema":"speedscope","shared":{"frames":[{"name":"a"}]},"profiles":[
      {"type":"sampled","name":"x","unit":"none","startValue":0,"endValue":9,"samples":[[0]],"weights":[5e9]}]}"#;
    assert!(read_points(Form::Speedscope, speedscope).0[0].contains(" x1666666667 "));
}

#[test]
fn times_since_1970_are_dates() {
    const BEGIN: Ns = 1_621_401_187_223_005_000;
    const YEAR: Ns = 365 * 86_400 * 1_000_000_000;
    let chrome = r#"{"traceEvents":[{"name":"a","ph":"X","ts":1621401187223005,"dur":100,"pid":1,"tid":8},
      {"name":"b","ph":"X","ts":1621401187223047.5,"dur":3,"pid":1,"tid":8}]}"#;
    let speedscope = r#"{"$schema":"speedscope","shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[
      {"type":"sampled","name":"x","unit":"microseconds","startValue":1621401187223005,"endValue":9,
       "samples":[[0],[0,1],[0]],"weights":[42.5,3,54.5]}]}"#;
    for (form, text) in [(Form::Chrome, chrome), (Form::Speedscope, speedscope)] {
        let read = read(form, text.as_bytes(), Some(BEGIN + YEAR)).expect("a profile");
        let points = read.profile.points.iter();
        let times: Vec<(Ns, Ns)> = points.map(|at| (at.ts - BEGIN, at.span)).collect();
        assert_eq!(
            times,
            [(0, 42_500), (42_500, 3_000), (45_500, 54_500)],
            "{form:?}"
        );
        assert!(!read.lacks.dates);
        // Nothing was recorded after the file was written.
        let read = super::read(form, text.as_bytes(), Some(BEGIN - YEAR)).expect("a profile");
        let ends = read.profile.points.iter().map(|at| at.ts + at.span);
        assert_eq!(ends.max(), Some(BEGIN - YEAR), "{form:?}");
        assert!(read.lacks.dates);
    }
}

#[test]
fn code_without_a_name_is_shown_by_its_address() {
    let field = |number: u8, body: &[u8]| [&[number << 3 | 2, body.len() as u8], body].concat();
    let mut bytes = field(1, &[8, 1, 16, 2]);
    // A location without lines, one with an undefined function, and their caller.
    bytes.extend(field(
        2,
        &field(1, &[1, 2, 3])
            .into_iter()
            .chain([16, 5])
            .collect::<Vec<_>>(),
    ));
    bytes.extend(field(3, &[8, 7, 40, 4]));
    bytes.extend(field(4, &[8, 1, 16, 7, 24, 0x80, 0x20]));
    bytes.extend(field(
        4,
        &[&[8, 2, 24, 16][..], &field(4, &[8, 99])].concat(),
    ));
    bytes.extend(field(4, &[&[8, 3][..], &field(4, &[8, 1])].concat()));
    bytes.extend(field(5, &[8, 1, 16, 3]));
    for text in ["", "cpu", "count", "main", "/bin/app"] {
        bytes.extend(field(6, text.as_bytes()));
    }
    let read = read(Form::Pprof, &bytes, Some(5)).expect("a profile");
    let frames: Vec<String> = read
        .profile
        .frames_of(read.profile.points[0].stack)
        .map(|frame| format!("{} {:?}", frame.function, frame.module))
        .collect();
    assert_eq!(
        frames,
        ["0x1000 Some(\"/bin/app\")", "0x10 None", "main None"]
    );
    assert_eq!((read.lacks.unnamed, read.lacks.bad), (2, 0));
}

#[test]
fn stacks_of_calls_within_calls_are_kept_within_bounds() {
    let event = |phase: char, name: &str, ts: usize| {
        format!("{{\"name\":\"{name}\",\"ph\":\"{phase}\",\"ts\":{ts},\"pid\":1,\"tid\":8}}")
    };
    let mut events: Vec<String> = (0..4000).map(|at| event('B', "a", at)).collect();
    for at in 0..4000 {
        events.push(event('B', &format!("f{at}"), 4000 + 2 * at));
        events.push(event('E', &format!("f{at}"), 4001 + 2 * at));
    }
    let text = format!("[{}]", events.join(","));
    let read = read(Form::Chrome, text.as_bytes(), None).expect("a profile");
    let frames: usize = read.profile.stacks.iter().map(|stack| stack.len()).sum();
    assert!(frames < 6 * text.len(), "{frames} of {}", text.len());
    assert!(read.lacks.cut > 0);
    // The time is complete, with the innermost frames.
    let time: Ns = read
        .profile
        .points
        .iter()
        .map(|at| at.span)
        .filter(|span| *span < 1 << 40)
        .sum();
    assert_eq!(time, 12_000_000 - 1_000);
}
