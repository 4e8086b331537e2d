// The limit: what a loop that consumes one topic and produces its copy takes, and nothing else. It keeps key, value,
// headers, timestamp, partition and order; it keeps no progress, so it begins at the start of the topic each time.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"lz4":    kgo.Lz4Compression(),
	"snappy": kgo.SnappyCompression(),
	"zstd":   kgo.ZstdCompression(),
}

func main() {
	source := flag.String("source", "", "bootstrap server")
	target := flag.String("target", "", "bootstrap server")
	topic := flag.String("topic", "", "what is consumed")
	remote := flag.String("remote", "", "where it is produced; exists, with as many partitions")
	codec := flag.String("codec", "none", "none, gzip, lz4, snappy or zstd")
	flag.Parse()

	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(*source),
		kgo.ConsumeTopics(*topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	fatal(err)
	producer, err := kgo.NewClient(
		kgo.SeedBrokers(*target),
		kgo.DefaultProduceTopic(*remote),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[*codec]),
		kgo.ProducerBatchMaxBytes(1_048_588), // what a topic takes by default
		kgo.MaxBufferedBytes(256<<20),
		kgo.MaxBufferedRecords(1_000_000),
	)
	fatal(err)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	for ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				fatal(err)
			}
		})
		fetches.EachRecord(func(read *kgo.Record) {
			written := &kgo.Record{
				Key:       read.Key,
				Value:     read.Value,
				Headers:   read.Headers,
				Timestamp: read.Timestamp,
				Partition: read.Partition,
			}
			producer.Produce(ctx, written, func(_ *kgo.Record, err error) {
				if ctx.Err() == nil {
					fatal(err)
				}
			})
		})
	}
}

func fatal(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
