<?php

declare(strict_types=1);

namespace App\Models;

use Illuminate\Database\Eloquent\Builder;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\Relations\BelongsTo;

/**
 * A note of a user. `number` counts the notes of one user, so that notes of other users do not
 * change it.
 *
 * @property int $id
 * @property int $user_id
 * @property int $number
 * @property string $title
 * @property string $text
 * @property string|null $summary
 * @property string|null $attachment
 * @property string|null $attachment_name
 */
final class Note extends Model
{
    protected $fillable = ['number', 'title', 'text', 'attachment', 'attachment_name'];
    protected $casts = ['user_id' => 'integer', 'number' => 'integer'];

    public function user(): BelongsTo
    {
        return $this->belongsTo(User::class);
    }

    /** "2" is the visitor's own second note, "ann:2" is Ann's. */
    public function resolveRouteBinding($value, $field = null): ?Model
    {
        [$owner, $number] = str_contains((string) $value, ':') ? explode(':', (string) $value, 2) : [null, $value];

        return self::query()
            ->where('number', $number)
            ->when(
                $owner === null,
                static fn (Builder $query) => $query->where('user_id', auth()->id()),
                static fn (Builder $query) => $query->whereHas(
                    'user',
                    static fn (Builder $user) => $user->where('name', $owner),
                ),
            )
            ->firstOrFail();
    }

    public function getRouteKeyName(): string
    {
        return 'number';
    }
}
