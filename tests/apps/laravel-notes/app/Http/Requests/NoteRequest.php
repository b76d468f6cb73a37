<?php

declare(strict_types=1);

namespace App\Http\Requests;

use Illuminate\Foundation\Http\FormRequest;

final class NoteRequest extends FormRequest
{
    public function authorize(): bool
    {
        return $this->user() !== null;
    }

    /** @return array<string, list<string>> */
    public function rules(): array
    {
        return [
            'title' => ['required', 'string', 'max:60'],
            'text' => ['required', 'string', 'min:5'],
            'attachment' => ['nullable', 'file', 'max:64', 'mimes:png,txt'],
        ];
    }
}
