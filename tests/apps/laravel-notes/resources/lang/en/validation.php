<?php

declare(strict_types=1);

return [
    'alpha_dash' => 'The :attribute has wrong characters.',
    'array' => 'The :attribute must be a list.',
    'confirmed' => 'The :attribute is not confirmed.',
    'email' => 'The :attribute is no address.',
    'integer' => 'The :attribute must be a number.',
    'max' => ['string' => 'The :attribute is too large.', 'file' => 'The :attribute is too large.'],
    'mimes' => 'The :attribute must be one of :values.',
    'min' => ['string' => 'The :attribute must have at least :min characters.'],
    'required' => 'The :attribute is missing.',
    'unique' => 'The :attribute is taken.',
    'uploaded' => 'The :attribute failed to upload.',
];
