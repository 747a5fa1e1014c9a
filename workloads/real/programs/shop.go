// A shop over HTTP: shop PORT LOG MS. Each page takes the mutex of the stock. After /on, until /off, a
// goroutine computes for MS while it holds the mutex, and logs that as BEGIN END in ns of CLOCK_MONOTONIC.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var (
	stock sync.Mutex
	on    atomic.Bool
	count = 100
)

func now() int64 {
	var at syscall.Timespec
	const monotonic = 1
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&at)), 0)
	return at.Nano()
}

func batch(log *os.File, ms int) {
	for {
		if on.Load() {
			stock.Lock()
			begin := now()
			for stop := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(stop); {
				count = count*31 + 7
			}
			end := now()
			stock.Unlock()
			fmt.Fprintf(log, "%d %d\n", begin, end)
		}
		time.Sleep(80 * time.Millisecond)
	}
}

func main() {
	log, err := os.Create(os.Args[2])
	if err != nil {
		panic(err)
	}
	ms, _ := strconv.Atoi(os.Args[3])
	go batch(log, ms)
	http.HandleFunc("/on", func(http.ResponseWriter, *http.Request) { on.Store(true) })
	http.HandleFunc("/off", func(http.ResponseWriter, *http.Request) { on.Store(false) })
	http.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		stock.Lock()
		count++
		stock.Unlock()
		fmt.Fprintln(response, "done")
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
