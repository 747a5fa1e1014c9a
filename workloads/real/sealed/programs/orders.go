// An HTTP server whose handlers hand their orders to one goroutine through a channel.
//
//	orders PORT LOG
//
// Pages: /order?hook=URL waits until the goroutine has taken it; with `hook`, the goroutine first
// requests that page. /plain answers at once. /audit?ms=N&n=N starts n goroutines that compute for
// N milliseconds. The log has times since the epoch, because Go does not show the monotonic clock.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

type order struct {
	hook string
	done chan struct{}
}

var (
	log  *os.File
	lock sync.Mutex
)

func stamp(what string, begin time.Time) {
	lock.Lock()
	defer lock.Unlock()
	fmt.Fprintf(log, "%s %d %d\n", what, begin.UnixNano(), time.Now().UnixNano())
}

func take(orders chan order) {
	for next := range orders {
		if next.hook != "" {
			begin := time.Now()
			if answer, err := http.Get(next.hook); err == nil {
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			stamp("hook", begin)
		}
		close(next.done)
	}
}

func number(request *http.Request, name string) int {
	value, _ := strconv.Atoi(request.URL.Query().Get(name))
	return value
}

func main() {
	var err error
	if log, err = os.OpenFile(os.Args[2], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		panic(err)
	}
	orders := make(chan order)
	go take(orders)
	http.HandleFunc("/order", func(answer http.ResponseWriter, request *http.Request) {
		next := order{request.URL.Query().Get("hook"), make(chan struct{})}
		orders <- next
		<-next.done
		fmt.Fprint(answer, "ok")
	})
	http.HandleFunc("/plain", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(answer, "ok")
	})
	http.HandleFunc("/audit", func(answer http.ResponseWriter, request *http.Request) {
		begin := time.Now()
		until := begin.Add(time.Duration(number(request, "ms")) * time.Millisecond)
		var all sync.WaitGroup
		for range number(request, "n") {
			all.Add(1)
			go func() {
				defer all.Done()
				sum := 0
				for time.Now().Before(until) {
					for index := range 1_000_000 {
						sum += index ^ sum
					}
				}
				_ = sum
			}()
		}
		all.Wait()
		stamp("audit", begin)
		fmt.Fprint(answer, "done")
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		panic(err)
	}
}
