package contender

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kvjournal/kvjournal/bench/message"
)

// natsJournal is a NATS server in this process, reached without a socket, with one stream in its file store. A message's seq is the
// stream's; its own time of receipt stands in for ours.
type natsJournal struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	sync   bool
	groups uint64
}

const (
	natsSubject = "kv.events"
	natsStream  = "KV"
	natsPatient = time.Minute
)

func openNATS(sync bool) func(dir string) (Journal, error) {
	return func(dir string) (Journal, error) {
		s, err := server.NewServer(&server.Options{
			DontListen: true, JetStream: true, StoreDir: dir, SyncAlways: sync, NoLog: true, NoSigs: true,
		})
		if err != nil {
			return nil, err
		}
		j := &natsJournal{server: s, sync: sync}
		s.Start()
		if !s.ReadyForConnections(natsPatient) {
			return nil, errors.Join(errors.New("the NATS server does not start"), j.Close())
		}
		if err := j.connect(); err != nil {
			return nil, errors.Join(err, j.Close())
		}
		return j, nil
	}
}

func (j *natsJournal) connect() (err error) {
	if j.conn, err = nats.Connect("", nats.InProcessServer(j.server)); err != nil {
		return err
	}
	if j.js, err = jetstream.New(j.conn, jetstream.WithPublishAsyncMaxPending(4096)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), natsPatient)
	defer cancel()
	j.stream, err = j.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: natsStream, Subjects: []string{natsSubject}, Storage: jetstream.FileStorage, AllowDirect: true, AllowAtomicPublish: j.sync,
	})
	return err
}

func (j *natsJournal) Append(group []message.Message) error {
	if j.sync && len(group) > 1 {
		return j.appendBatch(group)
	}
	acks := make([]jetstream.PubAckFuture, len(group))
	for i := range group {
		ack, err := j.js.PublishAsync(natsSubject, group[i].Payload())
		if err != nil {
			return err
		}
		acks[i] = ack
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		}
	}
	return nil
}

// appendBatch is one atomic publish, which the server syncs once.
func (j *natsJournal) appendBatch(group []message.Message) error {
	j.groups++
	id := strconv.FormatUint(j.groups, 10)
	for i := range group {
		m := &nats.Msg{Subject: natsSubject, Data: group[i].Payload(), Header: nats.Header{
			"Nats-Batch-Id": {id}, "Nats-Batch-Sequence": {strconv.Itoa(i + 1)},
		}}
		if i < len(group)-1 {
			if err := j.conn.PublishMsg(m); err != nil {
				return err
			}
			continue
		}
		m.Header["Nats-Batch-Commit"] = []string{"1"}
		ctx, cancel := context.WithTimeout(context.Background(), natsPatient)
		defer cancel()
		ack, err := j.js.PublishMsg(ctx, m)
		if err != nil {
			return err
		}
		if want := group[i].Seq; ack.Sequence != want {
			return fmt.Errorf("NATS gave seq %d, expected %d", ack.Sequence, want)
		}
	}
	return nil
}

func (j *natsJournal) Sync() error   { return nil }
func (j *natsJournal) Settle() error { return nil }

func (j *natsJournal) Last() (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), natsPatient)
	defer cancel()
	info, err := j.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

func (j *natsJournal) ReadAll(f func(seq uint64, payload []byte) error) error {
	last, err := j.Last()
	if err != nil || last == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*natsPatient)
	defer cancel()
	consumer, err := j.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(4096))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for seq := uint64(1); seq <= last; seq++ {
		m, err := messages.Next()
		if err != nil {
			return err
		}
		if err := f(seq, m.Data()); err != nil {
			return err
		}
	}
	return nil
}

func (j *natsJournal) Get(seq uint64) ([]byte, error) {
	m, err := j.stream.GetMsg(context.Background(), seq)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

func (j *natsJournal) Close() error {
	if j.conn != nil {
		j.conn.Close()
	}
	j.server.Shutdown()
	j.server.WaitForShutdown()
	return nil
}
