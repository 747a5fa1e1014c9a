// A store over HTTP: wal PORT FILE. Each put waits until a goroutine has written it, with all others that
// have arrived meanwhile, to the end of the file and to the disk, as stores with a log do.
package main

import (
	"fmt"
	"net/http"
	"os"
)

func write(file *os.File, puts chan chan struct{}) {
	for first := range puts {
		waiting := []chan struct{}{first}
		for more := len(puts); more > 0; more-- {
			waiting = append(waiting, <-puts)
		}
		for range waiting {
			fmt.Fprintln(file, "put")
		}
		if err := file.Sync(); err != nil {
			panic(err)
		}
		for _, done := range waiting {
			close(done)
		}
	}
}

func main() {
	file, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	puts := make(chan chan struct{}, 64)
	go write(file, puts)
	http.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		done := make(chan struct{})
		puts <- done
		<-done
		fmt.Fprintln(response, "stored")
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
