"""The browser's side: shows, selects, labels; every act goes through a public function."""
