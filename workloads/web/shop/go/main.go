// The shop of app.py, in Go, which has its own resolver: shop PORT DATABASE_PORT WORKERS LOG
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/lib/pq"
)

var pages = map[string]string{
	"/":          "SELECT title FROM item ORDER BY id DESC LIMIT 20",
	"/items":     "SELECT title FROM item WHERE price < 700",
	"/item":      "SELECT title FROM item WHERE id = 7",
	"/orders":    "SELECT item.title FROM orders JOIN item ON item.id = orders.item GROUP BY 1",
	"/customers": "SELECT customer FROM orders GROUP BY 1 ORDER BY count(*) DESC LIMIT 10",
	"/search":    "SELECT title FROM item WHERE title LIKE '%7%'",
	"/basket":    "SELECT sum(item.price)::text FROM orders JOIN item ON item.id = orders.item",
}

// The log entry of a request. A goroutine may continue in another thread after a wait.
type served struct {
	TraceID   *string `json:"trace_id"`
	Endpoint  string  `json:"endpoint"`
	Pid       int     `json:"pid"`
	Tid       int     `json:"tid"`
	TidEnd    int     `json:"tid_end"`
	BeginNs   int64   `json:"begin_ns"`
	EndNs     int64   `json:"end_ns"`
	Local     string  `json:"local"`
	Peer      string  `json:"peer"`
	ConnectNs *int64  `json:"connect_ns"`
}

type shop struct {
	database string
	file     *os.File
	// Limits concurrent pages to the number of threads of the other shops.
	slots chan struct{}
}

func (s *shop) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	entry := served{
		Endpoint: request.URL.Path, Pid: os.Getpid(), Tid: syscall.Gettid(), BeginNs: time.Now().UnixNano(),
		Local: request.Context().Value(http.LocalAddrContextKey).(net.Addr).String(), Peer: request.RemoteAddr,
	}
	if parts := strings.Split(request.Header.Get("traceparent"), "-"); len(parts) == 4 {
		entry.TraceID = &parts[1]
	}
	s.answer(answer, request, &entry)
	entry.TidEnd, entry.EndNs = syscall.Gettid(), time.Now().UnixNano()
	line, _ := json.Marshal(entry)
	s.file.Write(append(line, '\n'))
}

func (s *shop) answer(answer http.ResponseWriter, request *http.Request, entry *served) {
	statement, isPage := pages[request.URL.Path]
	if !isPage {
		fmt.Fprint(answer, "well")
		return
	}
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	begin := time.Now()
	titles, err := s.query(request.Context(), statement, func() {
		took := time.Since(begin).Nanoseconds()
		entry.ConnectNs = &took
	})
	if err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(answer, strings.Join(titles, "\n"))
}

// query connects to the database for each page, as programs without a connection pool do.
func (s *shop) query(ctx context.Context, statement string, connected func()) ([]string, error) {
	database, err := sql.Open("postgres", s.database)
	if err != nil {
		return nil, err
	}
	defer database.Close()
	if err := database.PingContext(ctx); err != nil {
		return nil, err
	}
	connected()
	rows, err := database.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var titles []string
	for rows.Next() {
		var title string
		if err := rows.Scan(&title); err != nil {
			return nil, err
		}
		titles = append(titles, title)
	}
	return titles, rows.Err()
}

func main() {
	file, err := os.OpenFile(os.Args[4], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		log.Fatal(err)
	}
	workers, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	database := fmt.Sprintf("host=db.internal port=%s user=shop dbname=postgres sslmode=disable", os.Args[2])
	handler := &shop{database: database, file: file, slots: make(chan struct{}, workers)}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], handler))
}
