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

fn told(form: Form, text: &str) -> (Vec<String>, Lacks) {
    let read = read(form, text, None).expect("a profile");
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
    assert_eq!(form_of(COLLAPSED), Some(Form::Collapsed));
    assert_eq!(form_of(SPEEDSCOPE), Some(Form::Speedscope));
    assert_eq!(form_of(CHROME), Some(Form::Chrome));
    assert_eq!(form_of("{\"traceEvents\": []}"), Some(Form::Chrome));
    for text in [
        "",
        "hello\nworld 5",
        "{}",
        "a b 5\nc d 6\n",
        "12;x\n",
        "[1, 2]",
    ] {
        assert_eq!(form_of(text), None, "{text}");
    }
}

#[test]
fn collapsed_stacks_have_shares_and_no_times() {
    let (points, lacks) = told(Form::Collapsed, COLLAPSED);
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
    let (points, lacks) = told(Form::Speedscope, SPEEDSCOPE);
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
    // A frame that is not there, and an end without a begin.
    assert_eq!((lacks.bad, lacks.unpaired, lacks.dates), (1, 1, true));
}

#[test]
fn calls_of_a_chrome_trace_are_stacks() {
    let (points, lacks) = told(Form::Chrome, CHROME);
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
            assert!(read(form, text, None).is_err(), "{form:?} {text}");
        }
    }
    assert_eq!(
        read(Form::Collapsed, "x\n\ny z\n", None)
            .expect("it is read")
            .lacks
            .bad,
        2
    );
}
