<?php

declare(strict_types=1);

namespace App\Jobs;

use App\Models\Note;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Queue\SerializesModels;

/** Counts the words of a note, in a queue worker. */
final class Summarise implements ShouldQueue
{
    use Dispatchable;
    use InteractsWithQueue;
    use Queueable;
    use SerializesModels;

    public function __construct(public Note $note)
    {
    }

    public function handle(): void
    {
        $this->note->summary = count(preg_split('/\s+/', trim($this->note->text))) . ' words';
        $this->note->save();
    }
}
