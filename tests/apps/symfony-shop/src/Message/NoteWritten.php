<?php

declare(strict_types=1);

namespace App\Message;

final class NoteWritten
{
    public function __construct(public int $id)
    {
    }
}
