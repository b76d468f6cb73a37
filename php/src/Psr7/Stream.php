<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\StreamInterface;

/** A PSR-7 stream over a PHP stream, which is opened on first use. */
final class Stream implements StreamInterface
{
    /** Bits of st_mode that contain the file type (stat(2)). */
    private const TYPE = 0170000;
    private const TYPE_FILE = 0100000;

    /** @var resource|null open */
    private $stream = null;

    /**
     * @param \Closure(): resource|null $open opens the stream on first use; null: detached or
     * closed
     * @param int|null $size in bytes, if known and not reported by PHP's stream
     */
    private function __construct(private ?\Closure $open, private ?int $size = null)
    {
    }

    /** Creates a readable, writable and seekable stream with $contents, positioned at the start. */
    public static function of(string $contents): self
    {
        return new self(static function () use ($contents) {
            $stream = fopen('php://temp', 'w+b');
            fwrite($stream, $contents);
            rewind($stream);

            return $stream;
        }, \strlen($contents));
    }

    /**
     * @param \Closure(): resource $open called on first use of the stream
     * @param int|null $size in bytes, if known and not reported by PHP's stream
     */
    public static function opening(\Closure $open, ?int $size = null): self
    {
        return new self($open, $size);
    }

    public function __toString(): string
    {
        if ($this->isSeekable()) {
            $this->rewind();
        }

        return $this->getContents();
    }

    public function close(): void
    {
        $this->open = null;
        $stream = $this->detach();
        if (\is_resource($stream)) {
            fclose($stream);
        }
    }

    /** @return resource|null */
    public function detach()
    {
        $stream = $this->opened();
        $this->stream = null;
        $this->size = null;

        return $stream;
    }

    public function getSize(): ?int
    {
        if ($this->size !== null) {
            return $this->size;
        }
        $stream = $this->opened();
        $about = $stream === null ? false : fstat($stream);
        // Streams other than regular files, such as pipes, report a size of 0 when it is unknown.
        $isFile = $about !== false && ($about['mode'] & self::TYPE) === self::TYPE_FILE;

        return $isFile || ($about['size'] ?? 0) > 0 ? $about['size'] : null;
    }

    /** @throws \RuntimeException */
    public function tell(): int
    {
        return self::done(ftell($this->needed()), 'cannot get the position in the stream');
    }

    public function eof(): bool
    {
        $stream = $this->opened();

        return $stream === null || feof($stream);
    }

    public function isSeekable(): bool
    {
        return (bool) $this->getMetadata('seekable');
    }

    /**
     * @param int $offset
     * @param int $whence
     *
     * @throws \RuntimeException
     */
    public function seek($offset, $whence = SEEK_SET): void
    {
        $stream = $this->needed();
        $sought = stream_get_meta_data($stream)['seekable'] && fseek($stream, $offset, $whence) === 0;
        self::done($sought, "cannot seek to $offset in the stream");
    }

    public function rewind(): void
    {
        $this->seek(0);
    }

    public function isWritable(): bool
    {
        return strpbrk((string) $this->getMetadata('mode'), 'waxc+') !== false;
    }

    /**
     * @param string $string
     *
     * @throws \RuntimeException
     */
    public function write($string): int
    {
        $stream = $this->needed();
        self::done($this->isWritable(), 'the stream is not open for writing');
        $this->size = null;

        return self::done(@fwrite($stream, $string), 'cannot write to the stream');
    }

    public function isReadable(): bool
    {
        return strpbrk((string) $this->getMetadata('mode'), 'r+') !== false;
    }

    /**
     * @param int $length
     *
     * @throws \RuntimeException
     */
    public function read($length): string
    {
        $stream = $this->needed();
        self::done($this->isReadable(), 'the stream is not open for reading');
        self::done($length >= 0, "cannot read $length bytes");

        return $length === 0 ? '' : self::done(@fread($stream, $length), 'cannot read from the stream');
    }

    /** @throws \RuntimeException */
    public function getContents(): string
    {
        $stream = $this->needed();
        self::done($this->isReadable(), 'the stream is not open for reading');

        return self::done(@stream_get_contents($stream), 'cannot read from the stream');
    }

    /**
     * @param string|null $key
     *
     * @return mixed
     */
    public function getMetadata($key = null)
    {
        $stream = $this->opened();
        $all = $stream === null ? [] : stream_get_meta_data($stream);

        return $key === null ? $all : $all[$key] ?? null;
    }

    /** @return resource|null */
    private function opened()
    {
        if ($this->open !== null) {
            [$open, $this->open] = [$this->open, null];
            $this->stream = $open();
        }

        // The code that created the stream may have closed it.
        return \is_resource($this->stream) ? $this->stream : null;
    }

    /**
     * @return resource
     *
     * @throws \RuntimeException
     */
    private function needed()
    {
        return $this->opened() ?? throw new \RuntimeException('the stream is closed or detached');
    }

    /**
     * @template T
     *
     * @param T|false $result
     *
     * @return T
     *
     * @throws \RuntimeException
     */
    private static function done(mixed $result, string $what): mixed
    {
        return $result === false ? throw new \RuntimeException($what) : $result;
    }
}
