// Computes and waits under Go's profiler, and writes the profiles: profiled FOLDER SECONDS
//
// cpu.pprof has CPU samples with labels, block.pprof and mutex.pprof have waits, goroutine.pprof has the stacks of
// all goroutines.
package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"
)

var lock sync.Mutex

func compute(until time.Time) int {
	total := 0
	for time.Now().Before(until) {
		for i := 0; i < 2000; i++ {
			total += i * i
		}
	}
	return total
}

func held() {
	lock.Lock()
	defer lock.Unlock()
	time.Sleep(20 * time.Millisecond)
}

func work(name string, length time.Duration, end time.Time, done *sync.WaitGroup) {
	defer done.Done()
	pprof.Do(context.Background(), pprof.Labels("worker", name), func(context.Context) {
		for time.Now().Before(end) {
			compute(time.Now().Add(length))
			held()
		}
	})
}

func write(folder, name string) {
	file, err := os.Create(filepath.Join(folder, name+".pprof"))
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if err := pprof.Lookup(name).WriteTo(file, 0); err != nil {
		panic(err)
	}
}

func main() {
	folder := os.Args[1]
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		panic(err)
	}
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	file, err := os.Create(filepath.Join(folder, "cpu.pprof"))
	if err != nil {
		panic(err)
	}
	begin := time.Now()
	if err := pprof.StartCPUProfile(file); err != nil {
		panic(err)
	}
	end := begin.Add(time.Duration(seconds * float64(time.Second)))
	var done sync.WaitGroup
	done.Add(2)
	go work("much", 60*time.Millisecond, end, &done)
	go work("little", 20*time.Millisecond, end, &done)
	time.Sleep(100 * time.Millisecond)
	write(folder, "goroutine")
	done.Wait()
	pprof.StopCPUProfile()
	file.Close()
	write(folder, "block")
	write(folder, "mutex")
	truth, _ := json.Marshal(map[string]int64{"begin": begin.UnixNano(), "end": time.Now().UnixNano()})
	os.WriteFile(filepath.Join(folder, "truth.json"), append(truth, '\n'), 0o644)
}
