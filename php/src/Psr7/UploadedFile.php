<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileInterface;

/** A PSR-7 upload: a temporary file of PHP that was not moved yet. */
final class UploadedFile implements UploadedFileInterface
{
    private const PIECE_BYTES = 64 * 1024;
    private const ERRORS = [
        UPLOAD_ERR_OK, UPLOAD_ERR_INI_SIZE, UPLOAD_ERR_FORM_SIZE, UPLOAD_ERR_PARTIAL, UPLOAD_ERR_NO_FILE,
        UPLOAD_ERR_NO_TMP_DIR, UPLOAD_ERR_CANT_WRITE, UPLOAD_ERR_EXTENSION,
    ];

    private ?StreamInterface $stream = null;
    private bool $moved = false;

    /**
     * @param string $file path of PHP's temporary file
     *
     * @throws \InvalidArgumentException
     */
    private function __construct(
        private string $file,
        private int $size,
        private int $error,
        private ?string $clientName,
        private ?string $clientType,
    ) {
        if (!\in_array($error, self::ERRORS, true)) {
            throw new \InvalidArgumentException("The error of an upload must be one of UPLOAD_ERR_*, $error given");
        }
    }

    /** Creates an upload from the values of one file in $_FILES. */
    public static function received(string $file, int $size, int $error, ?string $name, ?string $type): self
    {
        return new self($file, $size, $error, $name, $type);
    }

    /** @throws \RuntimeException when there is no file, or it was moved */
    public function getStream(): StreamInterface
    {
        $this->needed();

        return $this->stream ??= Stream::opening(
            fn () => @fopen($this->file, 'rb')
                ?: throw new \RuntimeException("cannot open the uploaded file `{$this->file}`"),
        );
    }

    /**
     * Moves the file with move_uploaded_file(). A file that was not uploaded by a client is copied.
     *
     * @param string $targetPath absolute, or relative to the working directory
     *
     * @throws \InvalidArgumentException when the path is not valid
     * @throws \RuntimeException when the file cannot be moved, or was already moved
     */
    public function moveTo($targetPath): void
    {
        $this->needed();
        if (!\is_string($targetPath) || $targetPath === '') {
            throw new \InvalidArgumentException('The target path of an upload must be a non-empty string');
        }
        if (is_uploaded_file($this->file)) {
            $this->moved = @move_uploaded_file($this->file, $targetPath);
        } else {
            $this->moved = $this->copyTo($targetPath);
        }
        if (!$this->moved) {
            throw new \RuntimeException("cannot move the uploaded file to `$targetPath`");
        }
        $this->stream?->close();
    }

    public function getSize(): ?int
    {
        return $this->size;
    }

    public function getError(): int
    {
        return $this->error;
    }

    public function getClientFilename(): ?string
    {
        return $this->clientName;
    }

    public function getClientMediaType(): ?string
    {
        return $this->clientType;
    }

    private function copyTo(string $path): bool
    {
        $source = $this->getStream();
        $target = @fopen($path, 'wb');
        if ($target === false) {
            return false;
        }
        if ($source->isSeekable()) {
            $source->rewind();
        }
        $whole = true;
        while ($whole && !$source->eof()) {
            $piece = $source->read(self::PIECE_BYTES);
            $whole = fwrite($target, $piece) === \strlen($piece);
        }

        return fclose($target) && $whole;
    }

    /** @throws \RuntimeException */
    private function needed(): void
    {
        if ($this->error !== UPLOAD_ERR_OK) {
            throw new \RuntimeException("the upload failed with error {$this->error}: no file available");
        }
        if ($this->moved) {
            throw new \RuntimeException('the uploaded file was already moved');
        }
    }
}
