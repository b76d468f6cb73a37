<?php

declare(strict_types=1);

namespace App\Policies;

use App\Models\Note;
use App\Models\User;

final class NotePolicy
{
    public function touch(User $user, Note $note): bool
    {
        return $user->id === $note->user_id;
    }
}
